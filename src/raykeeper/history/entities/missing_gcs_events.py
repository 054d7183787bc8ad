"""Nodes and actors without events from Ray's GCS: from the last poll of the head, and from the tasks that made them.

A GCS that does not reach its node's agent in the first half minute gives up for good: it sends no event of nodes,
actors and jobs as long as the cluster lives, while workers send those of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raykeeper.history.entities.job import CLUSTER_ENDED
from raykeeper.history.entities.nodes import last_statistics
from raykeeper.history.query.context import Row, SessionContext

INFERRED_LISTS = ("nodes", "actors")
"""Lists that are made here."""
WARNING = (
    "Ray's GCS sent no events about this, which it does for good where its node's agent starts too slowly. Nodes are "
    "those of the last poll, and actors those that tasks tell of, without how they ended."
)

ANY_ACTORS = """
    SELECT 1 FROM task_summary WHERE type = 'ACTOR_CREATION_TASK' GROUP BY ALL HAVING sum(number) > 0
"""
"""A session that had no actors is told by its summary, whatever the number of its tasks."""

ACTORS_OF_TASKS = """
    SELECT actor_id, any_value(job_id) AS job_id,
           arg_max(func_or_class_name, attempt_number) FILTER (type = 'ACTOR_CREATION_TASK') AS func_or_class_name,
           arg_max(state, attempt_number) FILTER (type = 'ACTOR_CREATION_TASK') AS state,
           max(attempt_number) FILTER (type = 'ACTOR_CREATION_TASK') AS attempt_number,
           arg_max((node_id, worker_id, worker_pid), coalesce(start_ns, 0)) FILTER (worker_id IS NOT NULL) AS place
    FROM task_list WHERE actor_id IS NOT NULL AND has_definition AND {which}
    GROUP BY actor_id HAVING state IS NOT NULL ORDER BY actor_id
"""
"""The task that made an actor often does not say where; those that it ran do."""

_ACTOR_STATES = {"FINISHED": "ALIVE", "FAILED": "DEAD"}
_WAITING = "PENDING_CREATION"
_RENAMED = {"objectStoreMemory": "object_store_memory", "node:InternalHead": "node:__internal_head__"}
"""The dashboard writes names of resources in camelCase; these are Ray's own, what users called theirs is not known."""


async def inferred_rows(context: SessionContext, name: str) -> list[Row]:
    """Rows as the state API has them, of nodes or actors; none of anything else."""
    if name == "nodes":
        end = context.session.ended_at
        entries = (await last_statistics(context)).entries.values()
        return [_ended_node(_node_row(entry), int(end.timestamp() * 1000) if end else None) for entry in entries]
    if name == "actors":
        is_over = context.session.ended_at is not None
        return [_actor_row(row, is_over=is_over) for row in await _actors(context)]
    return []


async def inferred_actor(context: SessionContext, actor_id: str) -> Row | None:
    """An actor by its tasks."""
    rows = await _actors(context, "actor_id = $actor_id", actor_id=actor_id)
    return rows[0] if rows else None


async def _actors(context: SessionContext, which: str = "TRUE", **params: object) -> list[Row]:
    if not await context.rows(ANY_ACTORS):
        return []
    rows = await context.rows(ACTORS_OF_TASKS.format(which=which), params)
    return [{**row, **_place(row["place"])} for row in rows]


def _place(place: Any) -> Row:
    values = place.values() if isinstance(place, dict) else place or (None, None, None)
    return dict(zip(("node_id", "worker_id", "worker_pid"), values, strict=True))


def _node_row(entry: Mapping[str, Any]) -> Row:
    """A node of the dashboard's summary."""
    raylet = entry["raylet"]
    resources = raylet.get("resourcesTotal") or {}
    return {
        "node_id": raylet["nodeId"],
        "node_ip": entry.get("ip") or raylet.get("nodeManagerAddress", ""),
        "is_head_node": bool(raylet.get("isHeadNode")),
        "state": raylet.get("state", "ALIVE"),
        "state_message": raylet.get("stateMessage"),
        "node_name": raylet.get("nodeName", ""),
        "resources_total": {_RENAMED.get(name, name): amount for name, amount in resources.items()},
        "labels": raylet.get("labels") or {},
        "start_time_ms": int(raylet.get("startTimeMs") or 0),
        "end_time_ms": int(raylet.get("endTimeMs") or 0),
    }


def _ended_node(node: Row, ended_ms: int | None) -> Row:
    if ended_ms is None or node["state"] == "DEAD":
        return node
    return {**node, "state": "DEAD", "state_message": CLUSTER_ENDED, "end_time_ms": ended_ms}


def _actor_row(task: Row, *, is_over: bool) -> Row:
    """An actor by the task that made it: alive once that finished, as far as anybody said."""
    state = _ACTOR_STATES.get(task["state"], _WAITING)
    cause = {"actor_died_error_context": {"error_message": CLUSTER_ENDED}} if is_over and state != "DEAD" else None
    return {
        "actor_id": task["actor_id"],
        "class_name": (task["func_or_class_name"] or "").split(".")[0],
        "state": "DEAD" if is_over else state,
        "job_id": task["job_id"],
        "name": "",
        "node_id": task["node_id"],
        "pid": task["worker_pid"] or 0,
        "ray_namespace": "",
        "serialized_runtime_env": "",
        "required_resources": {},
        "death_cause": cause,
        "is_detached": None,
        "placement_group_id": None,
        "repr_name": "",
        "num_restarts": str(task["attempt_number"]),
        "num_restarts_due_to_lineage_reconstruction": "0",
        "num_restarts_due_to_node_preemption": "0",
        "call_site": None,
        "label_selector": {},
        "fallback_strategy": None,
    }
