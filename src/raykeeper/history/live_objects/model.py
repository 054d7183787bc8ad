"""What is said about an object that exists now. Its namespace stands on each, so that a caller's view can be applied.

Nothing of a pod's spec is here but the name of its Kubernetes node and its image: values of environment variables,
arguments and annotations are never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, Protocol, get_args

import msgspec
from msgspec import Meta

from raykeeper.history.visibility import Visibility

LiveKind = Literal["RayCluster", "RayJob", "RayService", "RayCronJob"]
LiveState = Literal[
    "ready", "starting", "running", "succeeded", "failed", "invalid", "suspended", "scheduled", "ending", "unknown"
]
Tone = Literal["good", "bad", "warn", "busy", "quiet"]

KINDS: Final[tuple[LiveKind, ...]] = get_args(LiveKind)
STATES: Final[tuple[LiveState, ...]] = get_args(LiveState)


def kind_named(text: str) -> LiveKind | None:
    """The kind that a path means: `raycluster`, `rayclusters` or `RayCluster`."""
    wanted = text.lower().removesuffix("s")
    return next((kind for kind in KINDS if kind.lower() == wanted), None)


class LiveCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of an object."""

    type: str
    status: str
    words: Annotated[str, Meta(description="What type and status mean, in a sentence.")]
    tone: Annotated[Tone, Meta(description="Whether that is good or bad.")]
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class LiveObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that exists now, as lists show it."""

    kind: LiveKind
    namespace: str
    name: str
    uid: str
    state: Annotated[LiveState, Meta(description="How it is, in one word that all kinds share.")]
    status: Annotated[str, Meta(description="What its own status says: `ready`, `Running`, `SUCCEEDED`.")] = ""
    words: Annotated[str, Meta(description="Why it is so, in a sentence.")] = ""
    created_at: datetime | None = None
    owner_kind: str = ""
    owner_name: str = ""
    clusters: Annotated[tuple[str, ...], Meta(description="Names of its RayClusters, the one that works first.")] = ()
    conditions: tuple[LiveCondition, ...] = ()


class LiveContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a pod."""

    name: str
    state: str
    reason: Annotated[str, Meta(description="Why it waits or ended: `ImagePullBackOff`, `OOMKilled`.")] = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0
    last_reason: Annotated[str, Meta(description="How it ended the time before.")] = ""


class LivePod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of an object."""

    namespace: str
    name: str
    role: Annotated[str, Meta(description="`head`, `worker` or `submitter`.")]
    group: str = ""
    phase: str = ""
    words: Annotated[str, Meta(description="What it waits for, or why it failed; empty where all is well.")] = ""
    node: Annotated[str, Meta(description="Name of the Kubernetes node.")] = ""
    image: str = ""
    restarts: int = 0
    created_at: datetime | None = None
    containers: tuple[LiveContainer, ...] = ()

    @property
    def is_well(self) -> bool:
        return not self.words and self.phase in ("Running", "Succeeded")


class LiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event about the object, its clusters or those of its pods that are not well."""

    at: datetime
    count: int
    type: Annotated[str, Meta(description="`Normal` or `Warning`.")]
    reason: str
    message: str
    about_kind: str
    about_name: str
    component: str = ""


class LiveProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be read, so that what is shown may be short of it."""

    cause: Annotated[
        Literal["off", "forbidden", "unavailable", "not installed"],
        Meta(description="Nobody switched it on, a right is missing, Kubernetes gave no answer, or no such kind."),
    ]
    words: str
    verb: Annotated[str, Meta(description="Of the right that is missing.")] = ""
    resource: Annotated[str, Meta(description="What was asked for: `rayclusters.ray.io`.")] = ""
    namespace: Annotated[str, Meta(description="Where; empty for all namespaces.")] = ""


class LiveObjectList(msgspec.Struct, frozen=True, kw_only=True):
    """All objects that exist, as of a few seconds ago."""

    objects: tuple[LiveObject, ...]
    as_of: datetime
    is_complete: bool = True
    """False where there are more than are read, or where something could not be read."""
    problems: tuple[LiveProblem, ...] = ()


class LiveDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One object with its pods and what was said about it."""

    object: LiveObject
    as_of: datetime
    pods: tuple[LivePod, ...] = ()
    events: tuple[LiveEvent, ...] = ()
    jobs: Annotated[tuple[LiveObject, ...], Meta(description="RayJobs of a RayCronJob.")] = ()
    is_complete: Annotated[bool, Meta(description="Whether all pods, Events and RayJobs are here.")] = True
    problems: tuple[LiveProblem, ...] = ()


class LiveObjects(Protocol):
    """Kubernetes, asked for Ray's objects. Whoever may see some namespaces alone is given a view of this."""

    async def all(self) -> LiveObjectList:
        """All objects, of all kinds and namespaces. Raises nothing: what cannot be read is a problem in it."""
        ...

    async def find(self, kind: LiveKind, namespace: str, name: str) -> LiveDetail | LiveProblem | None:
        """One object, or why it cannot be read; None where there is none."""
        ...


@dataclass(frozen=True)
class VisibleLiveObjects(LiveObjects):
    """The objects of the namespaces that somebody may see; nothing is said about others."""

    whole: LiveObjects
    visibility: Visibility

    async def all(self) -> LiveObjectList:
        found = await self.whole.all()
        return msgspec.structs.replace(
            found,
            objects=tuple(one for one in found.objects if self.visibility.sees(one.namespace)),
            problems=tuple(one for one in found.problems if not one.namespace or self.visibility.sees(one.namespace)),
        )

    async def find(self, kind: LiveKind, namespace: str, name: str) -> LiveDetail | LiveProblem | None:
        return await self.whole.find(kind, namespace, name) if self.visibility.sees(namespace) else None
