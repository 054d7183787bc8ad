"""Ray's exceptions, as `ray.get` raises them in drivers and tasks, and the failures that they tell of. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from raykeeper.history.report.failures import FailureSet

_RAY_EXCEPTION = re.compile(r"ray\.exceptions\.(\w+)")
_LOST_OBJECTS = ("OBJECT_", "OWNER_DIED", "OUT_OF_DISK_ERROR")
_LOST_ACTORS = ("ACTOR_DIED", "ACTOR_UNAVAILABLE", "WORKER_DIED", "NODE_DIED", "OUT_OF_MEMORY")
"""A call of an actor may be told in another way than the actor's end."""
_TOLD: dict[str, tuple[str, ...]] = {
    "WorkerCrashedError": ("WORKER_DIED",),
    "OutOfMemoryError": ("OUT_OF_MEMORY", "WORKER_DIED"),
    "NodeDiedError": ("NODE_DIED",),
    "RayActorError": _LOST_ACTORS,
    "ActorDiedError": _LOST_ACTORS,
    "ActorUnavailableError": _LOST_ACTORS,
    "TaskCancelledError": ("TASK_CANCELLED",),
    "RuntimeEnvSetupError": ("RUNTIME_ENV_SETUP_FAILED",),
    "LocalRayletDiedError": ("LOCAL_RAYLET_DIED",),
    "TaskUnschedulableError": ("TASK_UNSCHEDULABLE_ERROR",),
    "ActorUnschedulableError": ("ACTOR_UNSCHEDULABLE_ERROR",),
    "TaskPlacementGroupRemoved": ("TASK_PLACEMENT_GROUP_REMOVED",),
    "ActorPlacementGroupRemoved": ("ACTOR_PLACEMENT_GROUP_REMOVED",),
    "ObjectLostError": _LOST_OBJECTS,
    "ObjectFetchTimedOutError": _LOST_OBJECTS,
    "ObjectReconstructionFailedError": _LOST_OBJECTS,
    "ObjectFreedError": ("OBJECT_FREED",),
    "OwnerDiedError": ("OWNER_DIED",),
    "OutOfDiskError": ("OUT_OF_DISK_ERROR",),
}
"""By the exception's name, the beginnings of the error types."""
TIMED_OUT = "GetTimeoutError"


def named_in(exception: str) -> str | None:
    """The name of an exception of Ray's that tells of a failure; None for any other exception."""
    found = _RAY_EXCEPTION.match(exception)
    return found[1] if found and (found[1] in _TOLD or found[1] == TIMED_OUT) else None


def told_of(name: str | None, sets: Sequence[FailureSet], words: str = "") -> list[FailureSet]:
    """The failures that an exception of this name tells of; of an actor that its words name, where they do.

    Who waited in vain, waited for what never ran.
    """
    if name == TIMED_OUT:
        return [one for one in sets if one.never_ran == one.failures]
    kinds = _TOLD.get(name or "", ())
    told = [one for one in sets if kinds and one.error_type.startswith(kinds)]
    if kinds is not _LOST_ACTORS:
        return told
    of_actors = [one for one in told if one.first.actor_id]
    return [one for one in of_actors if (one.first.actor_id or "") in words] or of_actors
