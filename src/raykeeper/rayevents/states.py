"""The states of tasks, actors and jobs in Ray's words and order."""

from __future__ import annotations

from typing import Final, Literal

TASK_STATES: Final = (
    "NIL",
    "PENDING_ARGS_AVAIL",
    "PENDING_NODE_ASSIGNMENT",
    "PENDING_OBJ_STORE_MEM_AVAIL",
    "PENDING_ARGS_FETCH",
    "SUBMITTED_TO_WORKER",
    "PENDING_ACTOR_TASK_ARGS_FETCH",
    "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
    "RUNNING",
    "RUNNING_IN_RAY_GET",
    "RUNNING_IN_RAY_WAIT",
    "FINISHED",
    "FAILED",
    "GETTING_AND_PINNING_ARGS",
)
"""In the order of Ray's TaskStatus enum: a task's state is the last of these it has a time for."""

ACTOR_STATES: Final = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD")
"""In the order of Ray's ActorState enum."""

JobStatus = Literal["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]
"""Of a submitted job."""
ENDED_JOBS: Final[frozenset[JobStatus]] = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
"""States that a job does not leave."""
