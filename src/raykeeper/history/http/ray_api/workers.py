# ruff: noqa: S608 - relations are made of texts of our own
"""`/api/v0/workers`: worker processes, and drivers as Ray counts them among workers."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities import cluster_end
from raykeeper.history.http.ray_api.captured import CAPTURED_WORKERS, captured_page
from raykeeper.history.http.ray_api.listing import TableList, list_answer, list_table
from raykeeper.history.http.ray_api.state_query import FilterColumn, StateQuery, parse_state_query
from raykeeper.history.http.responses import Listed
from raykeeper.history.query.context import Row, SessionContext

NEVER_LAUNCHED = 2**64 - 1  # Ray's -1 in an unsigned field: nobody launched a driver

WORKERS_AND_DRIVERS = f"""(
    SELECT worker_id, is_alive, worker_type, exit_type, workers.node_id, nodes.node_ip AS ip, pid, exit_detail,
           launch_ms, launched_ms, start_ms, end_ms
    FROM {cluster_end.WORKERS} AS workers LEFT JOIN nodes ON nodes.node_id = workers.node_id
    UNION ALL
    SELECT rpad(job_id, 56, 'f') AS worker_id, ended_ns IS NULL AS is_alive, 'DRIVER' AS worker_type, exit_type,
           driver_node_id AS node_id, nodes.node_ip AS ip, driver_pid AS pid, exit_detail, NULL AS launch_ms,
           NULL AS launched_ms, created_ns // 1000000 AS start_ms, ended_ns // 1000000 AS end_ms
    FROM {cluster_end.DRIVERS} AS drivers LEFT JOIN nodes ON nodes.node_id = drivers.driver_node_id
)"""

WORKERS = TableList(
    columns={
        "worker_id": FilterColumn("id"),
        "is_alive": FilterColumn("bool"),
        "worker_type": FilterColumn("word"),
        "exit_type": FilterColumn("word", is_absent_if_null=True),
        "node_id": FilterColumn("id"),
        "ip": FilterColumn(),
        "pid": FilterColumn("int"),
        "debugger_port": FilterColumn("int", sql="CAST(NULL AS BIGINT)", is_absent_if_null=True, is_optional=True),
        "num_paused_threads": FilterColumn("int", sql="CAST(NULL AS BIGINT)", is_absent_if_null=True, is_optional=True),
    },
    relation=WORKERS_AND_DRIVERS,
    order="worker_id",
    source_columns=frozenset({"is_alive"}),
)


async def list_workers(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _worker_page(context, query))


async def _worker_page(context: SessionContext, query: StateQuery) -> Listed:
    if captured := await captured_page(context, query, CAPTURED_WORKERS, WORKERS.columns):
        return captured
    return await list_table(context, query, WORKERS, _detailed_worker if query.is_detailed else _listed_worker)


def _listed_worker(row: Row) -> dict[str, Any]:
    return {
        "worker_id": row["worker_id"],
        "is_alive": row["is_alive"],
        "worker_type": row["worker_type"],
        "exit_type": row["exit_type"],
        "node_id": row["node_id"],
        "ip": row["ip"],
        "pid": row["pid"],
    }


def _detailed_worker(row: Row) -> dict[str, Any]:
    return {
        **_listed_worker(row),
        "exit_detail": row["exit_detail"],
        "worker_launch_time_ms": NEVER_LAUNCHED if row["launch_ms"] is None else row["launch_ms"],
        "worker_launched_time_ms": NEVER_LAUNCHED if row["launched_ms"] is None else row["launched_ms"],
        "start_time_ms": row["start_ms"] or 0,
        "end_time_ms": row["end_ms"] or 0,
        "debugger_port": None,
        "num_paused_threads": None,
    }
