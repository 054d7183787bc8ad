"""What a command is about, from the words on the command line: `rayjob/train`, `job train`, or `train` alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.client.kinds import CLUSTERS, JOBS, SERVICES, resource_called
from raykeeper.errors import RaykeeperError

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube

_GUESSED = (JOBS, SERVICES, CLUSTERS)
"""Kinds that a bare name is looked for in, those that own others first."""


class WrongSubject(RaykeeperError):
    """The command line does not say what is meant."""

    exit_code = 2


@dataclass(frozen=True)
class Place:
    """Which Kubernetes, which namespace, and where the history is."""

    namespace: str = ""
    context: str | None = None
    kubeconfig: Path | None = None
    history: str = ""
    history_token: str = ""


@dataclass(frozen=True)
class Subject:
    """An object; its kind is None where only a name was given."""

    resource: Resource[JSON] | None
    name: str


def parse_subject(words: list[str]) -> Subject:
    """From one or two words. Raises WrongSubject."""
    if len(words) == 1 and "/" in words[0]:
        words = words[0].split("/", 1)
    if len(words) == 1:
        return Subject(None, words[0])
    if len(words) != 2 or not all(words):
        raise WrongSubject("say what you mean: KIND/NAME, KIND NAME or NAME, such as rayjob/train")
    resource = resource_called(words[0])
    if resource is None:
        raise WrongSubject(f"{words[0]!r} is no kind of Ray: use raycluster, rayjob, rayservice or raycronjob")
    return Subject(resource, words[1])


async def resolve(kube: Kube, subject: Subject, namespace: str) -> tuple[Resource[JSON], ObjectKey]:
    """The kind and key; a bare name is looked for as RayJob, RayService and RayCluster.

    Of a name that nobody has, the kind is RayJob for want of better: history may know it. Raises WrongSubject.
    """
    key = ObjectKey(namespace, subject.name)
    if subject.resource is not None:
        return subject.resource, key
    there = [resource for resource in _GUESSED if await kube.find(resource, key) is not None]
    if len(there) > 1:
        named = " and ".join(f"{resource.kind.lower()}/{subject.name}" for resource in there)
        raise WrongSubject(f"there are {named} in {namespace}: say which you mean")
    return (there or [JOBS])[0], key
