"""What can be done to the pods of a RayCluster, as data: a plan is a list of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from raykeeper.operator.raycluster.pod import Pod


class Why(Enum):
    """Why a pod goes; the text is what the user reads in the event."""

    ENDED = "it has ended and will not be restarted"
    SUSPENDED = "the cluster is suspended"
    GROUP_SUSPENDED = "its worker group is suspended"
    GROUP_REMOVED = "its worker group is no longer in the spec"
    ASKED = "the autoscaler named it in workersToDelete"
    SURPLUS = "there are more replicas than asked for"
    INCOMPLETE = "another pod of its multi-host replica is gone"
    RECREATE = "the spec changed and the upgrade strategy is Recreate"
    LOST = "its node does not answer, so it is removed by force"
    SECOND_HEAD = "there is an older head pod"


@dataclass(frozen=True)
class Slot:
    """The place of a worker pod within its group, written into its labels."""

    index: int
    """Number of its replica, the lowest that was free."""
    replica: str | None = None
    """Name of its multi-host replica."""
    host: int = 0
    """Number of the pod within its multi-host replica."""


@dataclass(frozen=True)
class CreateHead:
    """Make the head pod."""


@dataclass(frozen=True)
class CreateWorker:
    """Make one pod of a worker group."""

    group: str
    slot: Slot | None


@dataclass(frozen=True)
class DeletePod:
    """Delete this very pod (its uid is a precondition)."""

    pod: Pod
    why: Why

    @property
    def explanation(self) -> str:
        """What the user reads about it."""
        is_known = self.why is Why.ENDED and self.pod.ending
        return f"{self.why.value} ({self.pod.ending})" if is_known else self.why.value

    @property
    def is_forced(self) -> bool:
        """Whether to remove the object without waiting for a kubelet."""
        return self.why is Why.LOST


@dataclass(frozen=True)
class RefreshHead:
    """Write our version and hash on a head pod that another version made, instead of recreating it."""

    pod: Pod


@dataclass(frozen=True)
class AdoptPod:
    """Make a pod that nobody owns the cluster's own."""

    pod: Pod


PodAction = CreateHead | CreateWorker | DeletePod | RefreshHead | AdoptPod
