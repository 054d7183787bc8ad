"""`/api/v0/tasks/timeline`: what workers measured, as a trace for Chrome's and Perfetto's viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.ray_json import optional_json
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.state_query import (
    MAX_LIMIT,
    Condition,
    Filter,
    StateQuery,
    to_condition,
    typed_filters,
)
from raykeeper.history.http.ray_api.tasks import COLUMNS, ORDER, page_bounds, visible_tasks
from raykeeper.history.http.responses import json_response
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.masking import masked

MEASURED_TASKS = """
    SELECT task_id, attempt_number, job_id, func_or_class_name, actor_id, component_type, component_id,
           component_ip, spans
    FROM tasks WHERE {where} AND task_id BETWEEN $first_id AND $last_id
    ORDER BY {order} LIMIT $row_limit
"""

_DRAWN = ("worker", "driver")
_COLOURS = {
    "worker_idle": "cq_build_abandoned",
    "task": "rail_response",
    "task:deserialize_arguments": "rail_load",
    "task:execute": "rail_animation",
    "task:store_outputs": "rail_idle",
    "wait_for_function": "detailed_memory_dump",
    "ray.get": "good",
    "ray.put": "terrible",
    "ray.wait": "vsync_highlight_color",
    "submit_task": "background_memory_dump",
    "fetch_and_run_function": "detailed_memory_dump",
    "register_remote_function": "detailed_memory_dump",
}
_OTHER_COLOUR = "generic_work"


async def get_timeline(request: Request, context: SessionContext) -> Response:
    """Raises Unanswerable."""
    job_id = request.query_params.get("job_id")
    try:
        filters = typed_filters([Filter("job_id", "=", job_id)] if job_id else [], COLUMNS)
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here
    rows = await _measured_rows(context, to_condition(filters, COLUMNS))
    headers = _download_headers(request, context, job_id)
    return await asyncio.to_thread(lambda: json_response(masked(trace(rows)), headers=headers))


async def _measured_rows(context: SessionContext, where: Condition) -> list[Row]:
    """Of as many tasks as a list has at most: Ray draws no others."""
    condition = f"{visible_tasks(StateQuery())} AND {where.sql}"
    params = {**where.params, "row_limit": MAX_LIMIT}
    page = await page_bounds(context, "task_list", condition, params)
    if page is None:
        return []
    statement = MEASURED_TASKS.format(where=condition, order=ORDER)
    return await context.rows(statement, {**params, "first_id": page[0], "last_id": page[1]}, page)


def trace(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A viewer wants numbers for processes and threads: nodes and workers are numbered as they come."""
    nodes: dict[str, int] = {}
    workers: dict[tuple[int, str], int] = {}
    spans = []
    for row in rows:
        if row["spans"] and row["component_type"] in _DRAWN:
            node = nodes.setdefault(row["component_ip"], len(nodes))
            worker = (node, f"{row['component_type']}:{row['component_id']}")
            thread = workers.setdefault(worker, len(workers))
            spans += [_span(span, row, node, thread) for span in row["spans"]]
    return [
        *spans,
        *(_name("process_name", f"Node {ip}", node, None) for ip, node in nodes.items()),
        *(_name("thread_name", worker, node, thread) for (node, worker), thread in workers.items()),
    ]


def _span(span: dict[str, Any], row: Row, node: int, thread: int) -> dict[str, Any]:
    extra = _extra(span["extra_data"])
    start_us, end_us = (span[name] / 1e6 * 1e3 for name in ("start_ns", "end_ns"))  # rounded as Ray rounds
    return {
        "cat": span["event_name"],
        "name": extra.get("name", span["event_name"]),
        "pid": node,
        "tid": thread,
        "ts": start_us,
        "dur": end_us - start_us,
        "cname": _COLOURS.get(extra.get("cname", span["event_name"]), _OTHER_COLOUR),
        "args": {
            **extra,
            **{name: row[name] for name in ("task_id", "job_id", "attempt_number", "func_or_class_name", "actor_id")},
        },
        "ph": "X",
    }


def _extra(text: str | None) -> dict[str, Any]:
    """What a span says of itself."""
    extra = optional_json(text)
    return extra if isinstance(extra, dict) else {}


def _name(kind: str, name: str, node: int, thread: int | None) -> dict[str, Any]:
    return {"name": kind, "args": {"name": name}, "pid": node, "tid": thread, "ph": "M"}


def _download_headers(request: Request, context: SessionContext, job_id: str | None) -> dict[str, str] | None:
    if request.query_params.get("download") != "1":
        return None
    time = context.session.as_of.strftime("%Y-%m-%d_%H-%M-%S")
    return {"Content-Disposition": f'attachment; filename="timeline-{job_id}-{time}.json"'}
