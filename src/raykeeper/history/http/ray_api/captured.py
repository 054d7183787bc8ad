"""Lists of a cluster that never had a collector beside it: no events, but every list its dashboard gave on one day.

`raykeeper collector --once` stores the state API's own answers. They are in Ray's shape already, so they are filtered
in memory by the rules that the tables are filtered by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raykeeper.history.entities.missing_gcs_events import INFERRED_LISTS, WARNING, inferred_rows
from raykeeper.history.entities.polled import has_polled_rows, polled_rows
from raykeeper.history.entities.tasks import LISTED_COLUMNS
from raykeeper.history.http.ray_api.listing import list_rows
from raykeeper.history.http.ray_api.state_query import Columns, StateQuery
from raykeeper.history.http.responses import Listed
from raykeeper.history.query.context import Row, SessionContext

ANY_EVENTS = "SELECT 1 FROM {table} WHERE has_definition LIMIT 1"


@dataclass(frozen=True)
class CapturedList:
    """One list of the state API, which has a table of the same name."""

    name: str
    identity: tuple[str, ...]
    listed: Sequence[str]
    """Columns without details."""


CAPTURED_TASKS = CapturedList(
    "tasks",
    ("task_id", "attempt_number"),
    LISTED_COLUMNS,
)
CAPTURED_ACTORS = CapturedList(
    "actors",
    ("actor_id",),
    ("actor_id", "class_name", "state", "job_id", "name", "node_id", "pid", "ray_namespace"),
)
CAPTURED_NODES = CapturedList(
    "nodes",
    ("node_id",),
    ("node_id", "node_ip", "is_head_node", "state", "state_message", "node_name", "resources_total", "labels"),
)
CAPTURED_WORKERS = CapturedList(
    "workers",
    ("worker_id",),
    ("worker_id", "is_alive", "worker_type", "exit_type", "node_id", "ip", "pid"),
)


async def captured_rows(context: SessionContext, captured: CapturedList) -> list[Row] | None:
    """All rows of a list that events tell nothing of, captured or inferred; None where there are none, or events."""
    rows = await asyncio.to_thread(polled_rows, context.session, captured.name, captured.identity)
    if rows is None and captured.name not in INFERRED_LISTS:
        return None  # without a look at the table: that of tasks is not fetched for this
    if await has_events(context, captured):
        return None
    return rows if rows is not None else await inferred_rows(context, captured.name) or None


async def has_events(context: SessionContext, captured: CapturedList) -> bool:
    return bool(await context.rows(ANY_EVENTS.format(table=captured.name)))


async def captured_page(
    context: SessionContext, query: StateQuery, captured: CapturedList, columns: Columns
) -> Listed | None:
    """One page of such a list."""
    rows = await captured_rows(context, captured)
    if rows is None:
        return None
    if query.excludes_drivers:
        rows = [row for row in rows if row.get("type") != "DRIVER_TASK"]
    shown = dict.fromkeys([*captured.listed, *(rows[0] if rows and query.is_detailed else ())])
    listed = list_rows(
        rows, query, columns, tuple(shown), key=lambda row: tuple(row[name] for name in captured.identity)
    )
    is_inferred = not has_polled_rows(context.session, captured.name)
    return replace(listed, warnings=(WARNING,)) if is_inferred else listed
