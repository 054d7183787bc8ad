# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""What ended without saying so: tasks whose worker or job ended, and all that still was when the cluster went.

Ray's GCS marks a task FAILED with WORKER_DIED a second after its worker's death and fifteen after the end of its job,
but sends no event about it. The end of the cluster is known from the collectors' records alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from raykeeper.layout.records import ClosedRecord, EndRecord, NodeRecord

SILENT_INTERVALS = 3
"""A node is silent once its heartbeat is older than this many of its intervals."""

FINAL_SILENCE = timedelta(minutes=5)
"""A node that neither ended nor was heard of for so long will send nothing more."""

_WORKER_EXIT_TYPES = ("SYSTEM_ERROR", "INTENDED_SYSTEM_EXIT", "USER_ERROR", "INTENDED_USER_EXIT", "NODE_OUT_OF_MEMORY")
"""In the order of Ray's enum: its GCS writes the number into a task's error."""


@dataclass(frozen=True)
class Ending:
    """How a cluster ended, as far as can be told now."""

    ended_at: datetime | None
    """None while it runs."""
    is_final: bool
    """No node will send more."""


def find_ending(
    nodes: Sequence[NodeRecord],
    ends: Sequence[EndRecord],
    closed: ClosedRecord | None,
    now: datetime,
    sealed_at: Mapping[str, datetime] | None = None,
) -> Ending:
    """The end of the newest head incarnation: by its own word, by the observer's, or by its silence.

    A head that fell silent lived until its last heartbeat, and until it sealed its last events (`sealed_at`, by node),
    which may be half a minute later. A session without any heartbeat has no known end.
    """
    ended = {end.node_id: end.ended_at for end in ends}
    is_final = all(node.node_id in ended or now - node.beat_at > FINAL_SILENCE for node in nodes)
    heads = sorted((node for node in nodes if node.role == "head"), key=lambda node: node.started_at)
    if heads and heads[-1].node_id in ended:
        return Ending(ended[heads[-1].node_id], is_final)
    if closed is not None:
        return Ending(closed.closed_at, is_final)
    if not heads:
        return Ending(None, is_final and bool(nodes))
    head = heads[-1]
    is_silent = (now - head.beat_at).total_seconds() > SILENT_INTERVALS * head.interval_seconds
    last_heard = max(head.beat_at, (sealed_at or {}).get(head.node_id, head.beat_at))
    return Ending(last_heard if is_silent else None, is_silent and is_final)


_EXIT_NUMBER = f"list_position({list(_WORKER_EXIT_TYPES)}, workers.exit_type) - 1"

CLOSED_TASKS = f"""
SELECT tasks.*,
    CASE
        WHEN tasks.finished_ns IS NOT NULL OR failed_ns IS NOT NULL OR last_state IS NULL THEN NULL
        WHEN workers.end_ns IS NOT NULL THEN 'worker'
        WHEN jobs.finished_ns IS NOT NULL THEN 'job'
        WHEN $cluster_end_ns::BIGINT IS NOT NULL THEN 'cluster'
    END AS closed_by,
    CASE closed_by
        WHEN 'worker' THEN workers.end_ns WHEN 'job' THEN jobs.finished_ns WHEN 'cluster' THEN $cluster_end_ns::BIGINT
    END AS closed_ns,
    CASE WHEN closed_by IN ('worker', 'job') THEN 'FAILED' END AS closed_state,
    CASE WHEN closed_by IN ('worker', 'job') THEN 'WORKER_DIED' END AS closed_error_type,
    CASE closed_by
        WHEN 'worker' THEN 'Worker running the task (' || tasks.worker_id || ') died with exit_type: '
            || coalesce({_EXIT_NUMBER}, 0) || ' with error_message: ' || coalesce(workers.exit_detail, '')
        WHEN 'job' THEN 'Job finishes (' || tasks.job_id
            || ') as driver exits. Marking all non-terminal tasks as failed.'
    END AS closed_message
FROM merged_tasks AS tasks
LEFT JOIN (SELECT worker_id, end_ns, exit_type, exit_detail FROM workers WHERE end_ns IS NOT NULL) AS workers
    ON workers.worker_id = tasks.worker_id
LEFT JOIN (SELECT job_id, finished_ns FROM jobs WHERE finished_ns IS NOT NULL) AS jobs
    ON jobs.job_id = tasks.job_id
"""
"""Over `merged_tasks` (with `last_state`), and the tables `workers` and `jobs`."""


CLOSED_SINCE = """
SELECT task_id FROM ({unfinished}) AS open
WHERE state NOT IN ('FINISHED', 'FAILED') AND (
    worker_id IN (SELECT worker_id FROM workers WHERE end_ns IS NOT NULL)
    OR job_id IN (SELECT job_id FROM jobs WHERE finished_ns IS NOT NULL)
)
"""
"""Over unfinished tasks and the tables `workers` and `jobs`: tasks that were open and are not any more."""


def closed_entities(derived: str, is_open: str, node_id: str | None = None) -> str:
    """A query: derived rows with what closed the open ones: their node's death, or the cluster's end."""
    if node_id is None:
        end = f"CASE WHEN {is_open} THEN $cluster_end_ns::BIGINT END"
        return f"""SELECT found.*, {end} AS closed_ns, CASE WHEN closed_ns IS NOT NULL THEN 'cluster' END AS closed_by
FROM ({derived}) AS found"""
    return f"""SELECT found.*,
    CASE WHEN {is_open} THEN coalesce(dead.end_ns, $cluster_end_ns::BIGINT) END AS closed_ns,
    CASE WHEN closed_ns IS NULL THEN NULL WHEN dead.end_ns IS NOT NULL THEN 'node' ELSE 'cluster' END AS closed_by
FROM ({derived}) AS found
LEFT JOIN (SELECT node_id, end_ns FROM nodes WHERE end_ns IS NOT NULL) AS dead ON dead.node_id = found.{node_id}"""
