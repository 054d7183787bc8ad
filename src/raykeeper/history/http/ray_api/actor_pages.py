"""`/logical/actors` and `/logical/actors/{actor id}`: what the frontend's actor pages show."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities import cluster_end
from raykeeper.history.entities.actors import exit_detail
from raykeeper.history.entities.nodes import POLLED, WorkerCounters, last_counters
from raykeeper.history.entities.ray_json import camel_keys, json_amounts, json_object, optional_json
from raykeeper.history.http.ray_api.captured import CAPTURED_ACTORS, captured_rows, has_events
from raykeeper.history.http.responses import cached_response, dashboard_response
from raykeeper.history.query.cache import polled_at, tables_version
from raykeeper.history.query.context import Row, SessionContext

NIL_NODE_ID = "f" * 56

ACTORS = """
    SELECT actors.*, nodes.node_ip
    FROM {relation} AS actors LEFT JOIN nodes ON nodes.node_id = actors.node_id
    WHERE {which} ORDER BY actor_id
"""

_PLACED = re.compile(r"(.+)_group_(?:\d+_)?[0-9a-zA-Z]+")
_BUNDLE = "bundle"
_DATED = ("ALIVE", "DEAD")


async def list_logical_actors(request: Request, context: SessionContext) -> Response:
    """All actors, or those asked for by id; an id that is none has null."""
    ids = request.query_params.get("ids")
    if ids is None and not await has_events(context, CAPTURED_ACTORS):
        return await _list_all(context)  # made of tasks, whose tables change all the time
    if ids is None:
        key = ("actors", polled_at(context.session, POLLED), tables_version(context.session, "actors", "nodes"))
        return await cached_response(context.cache, key, lambda: _list_all(context))
    wanted = ids.split(",")
    found = await read_actors(context, "actor_id", wanted)
    return dashboard_response("All actors fetched.", {"actors": {actor_id: found.get(actor_id) for actor_id in wanted}})


async def _list_all(context: SessionContext) -> Response:
    actors = await read_actors(context)
    return await asyncio.to_thread(dashboard_response, "All actors fetched.", {"actors": actors})


async def get_logical_actor(request: Request, context: SessionContext) -> Response:
    wanted = request.path_params["actor_id"]
    found = await read_actors(context, "actor_id", [wanted])
    return dashboard_response("Actor details fetched.", {"detail": camel_keys(found.get(wanted))})


async def actors_of_node(context: SessionContext, node_id: str) -> dict[str, Any]:
    return await read_actors(context, "node_id", [node_id])


async def read_actors(
    context: SessionContext, column: Literal["actor_id", "node_id"] = "actor_id", values: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """All actors by id, or those with one of these values."""
    counters = await last_counters(context)
    captured = await captured_rows(context, CAPTURED_ACTORS)
    if captured is not None:
        rows = [_captured_actor(row) for row in captured if values is None or row[column] in values]
    elif values is None:
        rows = await context.rows(ACTORS.format(relation=cluster_end.FRONTEND_ACTORS, which="TRUE"))
    else:
        which = f"actors.{column} IN (SELECT unnest($ids))"
        rows = await context.rows(ACTORS.format(relation=cluster_end.FRONTEND_ACTORS, which=which), {"ids": values})
    return {row["actor_id"]: _logical_actor(row, counters) for row in rows}


def _captured_actor(row: Row) -> Row:
    """A row of Ray's state API as if it came from the table; it has no times and no address."""
    unknown = dict.fromkeys(("node_ip", "worker_id", "port", "start_ns", "end_ns", "transitions"))
    texts = {name: json.dumps(row[name]) for name in ("required_resources", "label_selector")}
    messages = {name: json.dumps(camel_keys(row.get(name))) for name in ("death_cause", "fallback_strategy")}
    return {**row, **unknown, **texts, **messages}


def _logical_actor(row: Row, counters: WorkerCounters) -> dict[str, Any]:
    """An actor's last incarnation in the dashboard's spelling, with the counters its process last had."""
    actor = {
        "actorId": row["actor_id"],
        "jobId": row["job_id"],
        "address": _address(row),
        "name": row["name"] or "",
        "className": row["class_name"],
        "state": row["state"],
        "numRestarts": str(row["num_restarts"] or 0),
        "timestamp": float(_dated_ns(row) // 1_000_000),
        "pid": row["pid"] or 0,
        "startTime": (row["start_ns"] or 0) // 1_000_000,
        "endTime": (row["end_ns"] or 0) // 1_000_000,
        "reprName": row["repr_name"] or "",
        "actorClass": row["class_name"],
        "exitDetail": exit_detail(optional_json(row["death_cause"])),
        "requiredResources": asked_resources(json_amounts(row["required_resources"])),
        "labelSelector": json_object(row["label_selector"]),
    }
    if row["placement_group_id"]:
        actor["placementGroupId"] = row["placement_group_id"]
    if row["call_site"]:
        actor["callSite"] = row["call_site"]
    if row["fallback_strategy"]:
        actor["fallbackStrategy"] = optional_json(row["fallback_strategy"])
    memory = counters.memory_of_node.get(row["node_id"] or "", [])
    measured = {"gpus": [], "processStats": None, "mem": memory, "tpus": []}
    return {**actor, **counters.by_worker.get(row["worker_id"] or "", {}), **measured}


def _dated_ns(row: Row) -> int:
    """Ray dates an actor when it comes to life and when it dies, and not while it waits."""
    return max((item["ns"] for item in row["transitions"] or () if item["state"] in _DATED), default=0)


def asked_resources(resources: dict[str, float]) -> dict[str, float]:
    """As the user asked for them: a placement group renames resources and adds one of its own."""
    asked = {}
    for name, amount in resources.items():
        placed = _PLACED.match(name)
        if placed is None or placed[1] != _BUNDLE:
            asked[placed[1] if placed else name] = amount
    return asked


def _address(row: Row) -> dict[str, Any]:
    return {
        "nodeId": row["node_id"] or NIL_NODE_ID,
        "ipAddress": row["node_ip"] or "",
        "port": row["port"] or 0,
        "workerId": row["worker_id"] or "",
    }
