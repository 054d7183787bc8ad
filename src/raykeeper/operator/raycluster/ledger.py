"""What a pass did to pods, what was refused, and how both are told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from raykeeper.api.names import SAFE_ALPHABET
from raykeeper.errors import Unavailable
from raykeeper.kube.errors import ApiError
from raykeeper.operator.raycluster.actions import CreateHead, CreateWorker, DeletePod, Why
from raykeeper.operator.raycluster.pod import Pod
from raykeeper.operator.raycluster.status import Failure

_RANDOM_END = re.compile(rf"-[{SAFE_ALPHABET}]{{5}}$")


class PodWrite(NamedTuple):
    """One kind of write to pods, and what KubeRay's users know it by."""

    verb: str
    done: str
    """Reason of the Event when it was done."""
    refused: str
    """Reason of the Warning when it was refused."""
    failure: str
    """Reason of the condition ReplicaFailure."""


CREATE_HEAD: Final = PodWrite("Create", "CreatedHeadPod", "FailedToCreateHeadPod", "FailedCreateHeadPod")
CREATE_WORKER: Final = PodWrite("Create", "CreatedWorkerPod", "FailedToCreateWorkerPod", "FailedCreateWorkerPod")
DELETE_HEAD: Final = PodWrite("Delete", "DeletedHeadPod", "FailedToDeleteHeadPod", "FailedDeleteHeadPod")
DELETE_WORKER: Final = PodWrite("Delete", "DeletedWorkerPod", "FailedToDeleteWorkerPod", "FailedDeleteWorkerPod")
DELETE_GROUP: Final = PodWrite(
    "Delete", "DeletedWorkerPod", "FailedToDeleteWorkerPodCollection", "FailedDeleteWorkerPod"
)
DELETE_ALL: Final = PodWrite("Delete", "DeletedPod", "FailedToDeletePodCollection", "FailedDeleteAllPods")
"""Heads and workers alike, as one write."""

_TOGETHER: Final = {Why.SUSPENDED: DELETE_ALL, Why.RECREATE: DELETE_ALL, Why.GROUP_SUSPENDED: DELETE_GROUP}


def pod_write_of(action: CreateHead | CreateWorker | DeletePod) -> PodWrite:
    """How what is done is called. What takes a whole cluster or group away has a name of its own."""
    match action:
        case CreateHead():
            return CREATE_HEAD
        case CreateWorker():
            return CREATE_WORKER
        case DeletePod(pod, why):
            return _TOGETHER.get(why) or (DELETE_HEAD if pod.is_head else DELETE_WORKER)


class Refused(NamedTuple):
    """A write that was not done, and what there is to say about it."""

    write: PodWrite
    error: ApiError | Unavailable
    text: str


@dataclass
class Ledger:
    """What a pass did to pods and what was refused."""

    done: dict[tuple[PodWrite, str], list[str]] = field(default_factory=dict)
    """Names of pods by write and explanation."""
    refused: list[Refused] = field(default_factory=list)
    unfinished: list[ApiError | Unavailable] = field(default_factory=list)
    """Writes that met another change, and marks that were not set; they are repeated, and nobody need hear of it."""
    made: list[Pod] = field(default_factory=list)
    """Pods that the cache may not show yet."""
    deleted: set[str] = field(default_factory=set)
    """Uids of pods that the cache may still show as living."""

    def after(self, pods: Sequence[Pod], now: datetime) -> list[Pod]:
        """The pods as they are after this pass: with those it made, and those it deleted on their way out."""
        left = [replace(pod, ends=now) if pod.uid in self.deleted and pod.ends is None else pod for pod in pods]
        return [*left, *self.made]

    def touched(self, pods: Sequence[Pod]) -> list[Pod]:
        """Those of the pods after this pass that it made or deleted."""
        uids = self.deleted.union(pod.uid for pod in self.made)
        return [pod for pod in pods if pod.uid in uids]

    @property
    def errors(self) -> list[Exception]:
        return [*(one.error for one in self.refused), *self.unfinished]

    @property
    def failure(self) -> Failure | None:
        """What the status says about the first refusal."""
        if not self.refused:
            return None
        first = self.refused[0]
        return Failure(first.write.failure, first.text)


def without_chance(error: Exception, name: str) -> str:
    """What a refusal says, but for the random end of the pod's name: so a repeated refusal is told once."""
    return str(error).replace(name, _RANDOM_END.sub("-*", name))
