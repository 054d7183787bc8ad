"""`/nodes?view=…` and `/nodes/{node id}`: what the frontend's cluster pages show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.cluster_end import NODE_NAME
from raykeeper.history.entities.nodes import CORE_WORKERS, POLLED, NodeStatistics, last_statistics, state_message
from raykeeper.history.entities.ray_json import camel_keys, json_amounts, json_object
from raykeeper.history.http.ray_api.actor_pages import actors_of_node
from raykeeper.history.http.ray_api.nodes import to_ms
from raykeeper.history.http.ray_api.workers import WORKERS_AND_DRIVERS
from raykeeper.history.http.responses import cached_response, dashboard_response
from raykeeper.history.query.cache import polled_at, tables_version
from raykeeper.history.query.context import Row, SessionContext

PURPOSE = "keeper"
"""What a page of Ray's dashboard asks for: our bar in it adds this to requests that Ray's pages make alike."""
NOT_MEASURED = "(use was not measured)"

_IN_BYTES = ("memory", "object_store_memory")
_OF_ONE_NODE = "node:"
_UNITS = ("GiB", "MiB", "KiB")


def all_logical_resources(measured: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
    """One text for each node: as it was measured, or else what one that lives said of itself when it came."""
    alive = [row for row in rows if row["state"] == "ALIVE"]
    made = {row["node_id"]: _offered_text(json_amounts(row["resources_total"])) for row in alive}
    return {**{node_id: text for node_id, text in made.items() if text}, **measured}


def _offered_text(resources: Mapping[str, float]) -> str:
    """One line for each resource; empty where there is none."""
    named = sorted((name, amount) for name, amount in resources.items() if not name.startswith(_OF_ONE_NODE))
    lines = [f"{_bytes(amount) if name in _IN_BYTES else amount} {name}" for name, amount in named]
    return "\n".join([*lines, NOT_MEASURED]) if lines else ""


def _bytes(amount: float) -> str:
    for power, unit in zip((3, 2, 1), _UNITS, strict=True):
        if amount >= 1024**power:
            return f"{amount / 1024**power:.2f}{unit}"
    return f"{int(amount)}B"


NODES = f"""
    SELECT * REPLACE ({NODE_NAME} AS node_name, coalesce(nullif(hostname, ''), node_ip) AS hostname)
    FROM nodes WHERE has_definition ORDER BY started_ns, node_id
"""  # noqa: S608 - made of constants
WORKER_STARTS = " ".join(
    ("SELECT worker_id, start_ms FROM", WORKERS_AND_DRIVERS, "WHERE node_id = $node_id AND start_ms > 0")
)

# Ray adds `pfaults` and `pageins`, which are null on Linux, and at a null the frontend shows an empty page.
_NO_MEMORY = {"rss": 0, "vms": 0}
# What the frontend's node page reads without asking whether it is there: without these it is empty. A CPU without a
# figure would be drawn as busy.
_NOT_MEASURED: dict[str, Any] = {"loadAvg": [None, None], "networkSpeed": [], "cmdline": [], "cpu": 0}


_UNKNOWN_RAYLET: dict[str, Any] = {
    "storeStats": {},
    "rayletSocketName": "",
    "objectStoreSocketName": "",
    "metricsExportPort": 0,
    "nodeTypeName": "",
}


async def get_nodes(request: Request, context: SessionContext) -> Response:
    view = request.query_params.get("view")
    if view == "summary" and request.query_params.get(PURPOSE) == "logs":
        return await _summarize_for_logs(context)
    if view == "summary":
        key = ("nodes", polled_at(context.session, POLLED), tables_version(context.session, "nodes"))
        return await cached_response(context.cache, key, lambda: _summarize(context))
    if view is not None and view.lower() == "hostnamelist":
        summaries = node_summaries(await context.rows(NODES), await last_statistics(context), context.session.as_of)
        living = [entry for entry in summaries if entry["raylet"].get("state") == "ALIVE"]
        names = sorted({entry["hostname"] for entry in living if entry.get("hostname")})
        return dashboard_response("Node hostname list fetched.", {"hostNameList": names})
    return dashboard_response(f"Unknown view {view}", {}, 500)


async def _summarize(context: SessionContext) -> Response:
    statistics, rows = await last_statistics(context), await context.rows(NODES)
    summary = node_summaries(rows, statistics, context.session.as_of)
    resources = all_logical_resources(statistics.logical_resources, rows)
    data = {"summary": summary, "nodeLogicalResources": resources}
    return await asyncio.to_thread(dashboard_response, "Node summary fetched.", data)


async def _summarize_for_logs(context: SessionContext) -> Response:
    """Ray's Logs tab shows living nodes alone; here those count that left logs, alive or dead."""
    statistics, rows = await last_statistics(context), await context.rows(NODES)
    summary = node_summaries(rows, statistics, context.session.as_of)
    left = [{**entry, "raylet": {**entry["raylet"], "state": "ALIVE"}} for entry in summary]
    data = {"summary": left, "nodeLogicalResources": {}}
    return await asyncio.to_thread(dashboard_response, "Node summary fetched.", data)


async def get_node(request: Request, context: SessionContext) -> Response:
    node_id = request.path_params["node_id"]
    statistics = await last_statistics(context)
    summaries = node_summaries(await context.rows(NODES), statistics, context.session.as_of)
    entry = next((entry for entry in summaries if entry["raylet"].get("nodeId") == node_id), None)
    found = unknown_node() if entry is None else {**_NOT_MEASURED, **entry}
    actors = camel_keys(await actors_of_node(context, node_id))
    starts = _starts_by_worker(await context.rows(WORKER_STARTS, {"node_id": node_id}))
    is_dead = found["raylet"].get("state") == "DEAD" or await context.is_over()
    # The cluster tab calls every worker ALIVE; of a node that is gone, the node's own page shows them.
    is_hidden = is_dead and request.query_params.get(PURPOSE) == "cluster"
    measured = [] if is_hidden else statistics.workers(node_id)
    workers = [_worker_entry(worker, actors, starts) for worker in measured]
    return dashboard_response("Node details fetched.", {"detail": _node_detail(found, actors, workers)})


async def is_node_known(context: SessionContext, node_id: str) -> bool:
    """Whether events or the last poll tell of such a node."""
    return node_id in (await last_statistics(context)).entries or any(
        row["node_id"] == node_id for row in await context.rows(NODES)
    )


def node_summaries(rows: list[Row], statistics: NodeStatistics, as_of: datetime) -> list[dict[str, Any]]:
    """Every node, in the order in which they came: as measured last, and dead if it died since."""
    known = {row["node_id"]: row for row in rows}
    polled = [_updated_entry(entry, known.get(node_id), as_of) for node_id, entry in statistics.entries.items()]
    return [*polled, *(_made_entry(row, as_of) for row in rows if row["node_id"] not in statistics.entries)]


def _updated_entry(entry: Mapping[str, Any], row: Row | None, as_of: datetime) -> dict[str, Any]:
    """A polled entry, with the death that events tell of; one that was not measured yet, with all that they tell."""
    if row is None:
        return dict(entry)
    made = {} if entry.get("hostname") else _made_entry(row, as_of)
    raylet = {**made.get("raylet", {}), **entry["raylet"]}
    death = _death(row) if row["state"] == "DEAD" and raylet.get("state") != "DEAD" else {}
    return {**made, **entry, "raylet": {**raylet, **death}}


def _made_entry(row: Row, as_of: datetime) -> dict[str, Any]:
    """A node of which nothing was measured; what only its machine knows is empty."""
    raylet = {
        **_UNKNOWN_RAYLET,
        "objectStoreUsedMemory": 0,
        "objectStoreAvailableMemory": 0,
        "nodeId": row["node_id"],
        "nodeManagerAddress": row["node_ip"],
        "nodeManagerHostname": row["hostname"],
        "resourcesTotal": camel_keys(json_amounts(row["resources_total"])),
        "nodeName": row["node_name"],
        "startTimeMs": str(to_ms(row["started_ns"])),
        "isHeadNode": bool(row["is_head_node"]),
        "labels": json_object(row["labels"]),
        "instanceId": row["instance_id"] or "",
        "instanceTypeName": row["instance_type_name"] or "",
        CORE_WORKERS: [],
        **_death(row),
    }
    return {
        "now": as_of.timestamp(),
        "hostname": row["hostname"],
        "ip": row["node_ip"],
        "raylet": raylet,
        "tpus": [],
    }


def _node_detail(
    entry: Mapping[str, Any], actors: dict[str, Any], workers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    raylet = {name: value for name, value in entry["raylet"].items() if name != CORE_WORKERS}
    return {**entry, "raylet": raylet, "actors": actors, "workers": workers}


def _starts_by_worker(rows: Sequence[Row]) -> dict[str, float]:
    """Seconds since 1970, by worker id."""
    return {row["worker_id"]: row["start_ms"] / 1000 for row in rows}


def _worker_entry(worker: Mapping[str, Any], actors: Mapping[str, Any], starts: Mapping[str, float]) -> dict[str, Any]:
    """A worker process by its counters; CPU and memory of processes are not asked for."""
    actor = actors.get(worker.get("actorId", ""))
    start = starts.get(worker.get("workerId", ""))
    return {
        "pid": worker.get("pid"),
        **({} if start is None else {"createTime": start}),  # a null would be shown as 1970
        "cpuPercent": 0,
        "cpuTimes": {},
        "cmdline": [f"ray::{actor['className']}" if actor else "ray::IDLE"],
        "memoryInfo": _NO_MEMORY,
        "memoryFullInfo": None,
        "coreWorkerStats": [worker],
        "language": worker.get("language"),
        "jobId": worker.get("jobId"),
    }


def unknown_node() -> dict[str, Any]:
    """Ray's answer for an id that no node has."""
    raylet = {"objectStoreUsedMemory": 0, "objectStoreAvailableMemory": 0, "stateMessage": None}
    return {"raylet": raylet, "tpus": []}


def _death(row: Row) -> dict[str, Any]:
    if row["state"] != "DEAD":
        return {"state": row["state"], "endTimeMs": "0", "stateMessage": None}
    return {
        "state": "DEAD",
        "endTimeMs": str(to_ms(row["end_ns"])),
        "deathInfo": {"reason": row["death_reason"], "reasonMessage": row["death_message"]},
        "stateMessage": state_message(row["death_reason"], row["death_message"]),
    }
