"""`/api/v0/actors` and `/api/v0/actors/summarize`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities import cluster_end
from raykeeper.history.entities.ray_json import json_amounts, json_object, protobuf_json
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.captured import CAPTURED_ACTORS, captured_page
from raykeeper.history.http.ray_api.listing import TableList, list_answer, list_table
from raykeeper.history.http.ray_api.state_query import (
    FilterColumn,
    StateQuery,
    parse_filters,
    parse_state_query,
    to_condition,
    typed_filters,
)
from raykeeper.history.http.responses import Listed, summary_response
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.rayevents.ids import ACTOR_ID_BYTES, JOB_ID_BYTES
from raykeeper.rayevents.states import ACTOR_STATES

ACTORS = TableList(
    columns={
        "actor_id": FilterColumn("id", id_bytes=ACTOR_ID_BYTES),
        "class_name": FilterColumn(),
        "state": FilterColumn("word"),
        "job_id": FilterColumn("id", id_bytes=JOB_ID_BYTES),
        "name": FilterColumn(sql="coalesce(name, '')"),
        "node_id": FilterColumn("id", is_absent_if_null=True),
        "pid": FilterColumn("int", sql="coalesce(pid, 0)", is_optional=True),
        "ray_namespace": FilterColumn(),
        "placement_group_id": FilterColumn("id", is_absent_if_null=True),
        "repr_name": FilterColumn(sql="coalesce(repr_name, '')"),
    },
    relation=cluster_end.ACTORS,
    order="actor_id",
)

ACTORS_BY_CLASS = """
    SELECT class_name, state, count(*) AS actors, min(actor_id) AS first_actor_id
    FROM {relation} WHERE {where} GROUP BY class_name, state ORDER BY first_actor_id
"""

COUNTED_ACTORS = "SELECT count(*) AS actors FROM actors WHERE has_definition"


async def list_actors(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _actor_page(context, query))


async def _actor_page(context: SessionContext, query: StateQuery) -> Listed:
    _check_states(query)
    if captured := await captured_page(context, query, CAPTURED_ACTORS, ACTORS.columns):
        return captured
    return await list_table(context, query, ACTORS, _detailed_actor if query.is_detailed else _listed_actor)


async def summarize_actors(request: Request, context: SessionContext) -> Response:
    try:
        query = StateQuery(filters=parse_filters(request.query_params))
        _check_states(query)
        where = to_condition(typed_filters(query.filters, ACTORS.columns), ACTORS.columns)
        if captured := await captured_page(context, replace(query, limit=sys.maxsize), CAPTURED_ACTORS, ACTORS.columns):
            return summary_response(captured, _actor_summary(_counted_by_class(captured.rows)))
        rows = await context.rows(ACTORS_BY_CLASS.format(relation=cluster_end.ACTORS, where=where.sql), where.params)
        [total] = await context.rows(COUNTED_ACTORS)
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here
    summary = _actor_summary(rows)
    counts = Listed([], total=total["actors"], after_source=total["actors"], matching=summary["total_actors"])
    return summary_response(counts, summary)


def _counted_by_class(actors: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows of ACTORS_BY_CLASS for actors in memory."""
    numbers = Counter((actor["class_name"], actor["state"]) for actor in actors)
    return [{"class_name": name, "state": state, "actors": number} for (name, state), number in numbers.items()]


def _actor_summary(rows: list[Row]) -> dict[str, Any]:
    summary: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = summary.setdefault(row["class_name"], {"class_name": row["class_name"], "state_counts": {}})
        entry["state_counts"][row["state"]] = row["actors"]
    return {"summary": summary, "total_actors": sum(row["actors"] for row in rows), "summary_by": "class"}


def _listed_actor(row: Row) -> dict[str, Any]:
    return {
        "actor_id": row["actor_id"],
        "class_name": row["class_name"],
        "state": row["state"],
        "job_id": row["job_id"],
        "name": row["name"] or "",
        "node_id": row["node_id"],
        "pid": row["pid"] or 0,
        "ray_namespace": row["ray_namespace"] or "",
    }


def _detailed_actor(row: Row) -> dict[str, Any]:
    """All columns; Ray writes its 64-bit counters as text."""
    return {
        **_listed_actor(row),
        "serialized_runtime_env": row["serialized_runtime_env"] or "",
        "required_resources": json_amounts(row["required_resources"]),
        "death_cause": protobuf_json(row["death_cause"]),
        "is_detached": row["is_detached"],
        "placement_group_id": row["placement_group_id"],
        "repr_name": row["repr_name"] or "",
        "num_restarts": str(row["num_restarts"] or 0),
        "num_restarts_due_to_lineage_reconstruction": str(_restarts(row, "LINEAGE_RECONSTRUCTION")),
        "num_restarts_due_to_node_preemption": str(_restarts(row, "NODE_PREEMPTION")),
        "call_site": row["call_site"] or None,
        "label_selector": json_object(row["label_selector"]),
        "fallback_strategy": protobuf_json(row["fallback_strategy"]),
    }


def _restarts(row: Row, reason: str) -> int:
    return sum(item["state"] == "RESTARTING" and item["restart_reason"] == reason for item in row["transitions"] or ())


def _check_states(query: StateQuery) -> None:
    for item in query.filters:
        if item.column == "state" and item.predicate == "=" and item.value.upper() not in ACTOR_STATES:
            raise InvalidQuery(f"Invalid actor state for filtering: {item.value.upper()}")
