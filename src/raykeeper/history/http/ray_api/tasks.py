"""`/api/v0/tasks`: attempts of tasks, by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.tasks import LISTED_COLUMNS, encoded_detailed_task, encoded_listed_task
from raykeeper.history.http.ray_api.captured import CAPTURED_TASKS, captured_page
from raykeeper.history.http.ray_api.listing import list_answer
from raykeeper.history.http.ray_api.state_query import (
    Columns,
    FilterColumn,
    StateQuery,
    TypedFilter,
    parse_state_query,
    to_condition,
    typed_filters,
)
from raykeeper.history.http.responses import Listed
from raykeeper.history.query.context import SessionContext, TaskIds
from raykeeper.masking import Masked
from raykeeper.rayevents.ids import ACTOR_ID_BYTES, JOB_ID_BYTES, TASK_ID_BYTES

COLUMNS: Columns = {
    "task_id": FilterColumn("id", id_bytes=TASK_ID_BYTES),
    "attempt_number": FilterColumn("int"),
    "name": FilterColumn(),
    "state": FilterColumn("word"),
    "job_id": FilterColumn("id", id_bytes=JOB_ID_BYTES),
    "actor_id": FilterColumn("id", id_bytes=ACTOR_ID_BYTES),
    "type": FilterColumn("word"),
    "func_or_class_name": FilterColumn(),
    "parent_task_id": FilterColumn("id"),
    "node_id": FilterColumn("id"),
    "worker_id": FilterColumn("id"),
    "worker_pid": FilterColumn("int", is_optional=True),
    "error_type": FilterColumn("word", is_absent_if_null=True),
    "language": FilterColumn("word"),
    "placement_group_id": FilterColumn("id"),
    # Nobody can be paused in the past, so Ray's column is empty.
    "is_debugger_paused": FilterColumn("bool", sql="CAST(NULL AS BOOLEAN)", is_optional=True),
}

SOURCE_COLUMNS = frozenset({"actor_id", "job_id", "task_id", "name", "state"})
"""Filters that Ray's GCS applies itself: they lower `total`, the others only `num_filtered`."""

SUMMARY_COLUMNS = frozenset({"job_id", "name", "func_or_class_name", "type", "state"})
"""Filters by these are answered from the summary, whose size does not grow with the number of tasks."""

ORDER = "task_id, attempt_number"
"""By id, as in Ray; attempts of one task come from Ray in no order."""

LISTED_TASKS = """
    SELECT {columns} FROM {relation} WHERE {where} ORDER BY {order} LIMIT $row_limit
"""

PAGE_BOUNDS = """
    SELECT min(task_id) AS first_id, max(task_id) AS last_id
    FROM (SELECT task_id FROM {relation} WHERE {where} ORDER BY {order} LIMIT $row_limit)
"""

DETAILED_TASKS = """
    SELECT tasks.* EXCLUDE (
        spans, reported_error, function_module, function_class, function_name, task_name, actor_repr_name
    ), to_json(list_transform(spans, lambda span: {{
        'start_time': span.start_ns / 1e6, 'end_time': span.end_ns / 1e6,
        'extra_data': TRY_CAST(span.extra_data AS JSON), 'event_name': span.event_name
    }})) AS spans_json
    FROM tasks WHERE {where} AND task_id BETWEEN $first_id AND $last_id ORDER BY {order} LIMIT $row_limit
"""
"""Spans are most of a page of details: written as JSON by the database, they cost half of what Python would take."""

COUNTED_TASKS = "SELECT count(*) AS number FROM {relation} WHERE {where}"

SUMMED_TASKS = "SELECT coalesce(sum(number), 0)::BIGINT AS number FROM task_summary WHERE {where}"


async def list_tasks(request: Request, context: SessionContext) -> Response:
    query = parse_state_query(request.query_params)
    return await list_answer(context, await _task_page(context, query))


async def _task_page(context: SessionContext, query: StateQuery) -> Listed:
    """One page of attempts, with exact counts."""
    if captured := await captured_page(context, query, CAPTURED_TASKS, COLUMNS):
        return captured
    filters = typed_filters(query.filters, COLUMNS)
    rows = await (_detailed_rows if query.is_detailed else _listed_rows)(context, query, filters)
    total = await count_tasks(context, query, [item for item in filters if item.column in SOURCE_COLUMNS])
    matching = total if len(rows) == total else await count_tasks(context, query, filters)
    return Listed([], total=total, after_source=total, matching=matching, encoded=rows)


async def _listed_rows(context: SessionContext, query: StateQuery, filters: Sequence[TypedFilter]) -> list[Masked]:
    where = to_condition(filters, COLUMNS)
    statement = LISTED_TASKS.format(
        columns=", ".join(LISTED_COLUMNS),
        relation=list_relation(filters),
        where=f"{visible_tasks(query)} AND {where.sql}",
        order=ORDER,
    )
    return await context.shaped_rows(statement, {**where.params, "row_limit": query.limit}, encoded_listed_task)


async def _detailed_rows(context: SessionContext, query: StateQuery, filters: Sequence[TypedFilter]) -> list[Masked]:
    """The narrow table tells between which ids the page lies, so that few of the wide rows are read."""
    where = to_condition(filters, COLUMNS)
    condition, params = f"{visible_tasks(query)} AND {where.sql}", {**where.params, "row_limit": query.limit}
    page = await page_bounds(context, list_relation(filters), condition, params)
    if page is None:
        return []
    statement, bounds = DETAILED_TASKS.format(where=condition, order=ORDER), {"first_id": page[0], "last_id": page[1]}
    return await context.shaped_rows(statement, {**params, **bounds}, encoded_detailed_task, page)


async def page_bounds(
    context: SessionContext, relation: str, condition: str, params: Mapping[str, object]
) -> TaskIds | None:
    """The first and the last id of the page that a condition and a limit give; None where it is empty."""
    [page] = await context.rows(PAGE_BOUNDS.format(relation=relation, where=condition, order=ORDER), params)
    return None if page["last_id"] is None else (page["first_id"], page["last_id"])


async def count_tasks(context: SessionContext, query: StateQuery, filters: Sequence[TypedFilter]) -> int:
    """How many attempts pass the filters: from the summary where it knows, else counted in the narrow table."""
    where = to_condition(filters, COLUMNS)
    if is_in_summary(filters):
        statement = SUMMED_TASKS.format(where=f"{no_drivers(query)} AND {where.sql}")
    else:
        statement = COUNTED_TASKS.format(
            relation=list_relation(filters), where=f"{visible_tasks(query)} AND {where.sql}"
        )
    [row] = await context.rows(statement, where.params)
    return int(row["number"])


def is_in_summary(filters: Sequence[TypedFilter]) -> bool:
    """Whether the summary can tell which attempts pass the filters."""
    return all(item.column in SUMMARY_COLUMNS for item in filters)


def list_relation(filters: Sequence[TypedFilter]) -> str:
    """The smaller table, where the filters want only what is not finished."""
    return "unfinished_tasks" if any(_is_about_unfinished(item) for item in filters) else "task_list"


def visible_tasks(query: StateQuery) -> str:
    """Attempts without a definition are of tasks whose events Ray was told not to send; no list has them."""
    return f"has_definition AND {no_drivers(query)}"


def no_drivers(query: StateQuery) -> str:
    return "type <> 'DRIVER_TASK'" if query.excludes_drivers else "TRUE"


def _is_about_unfinished(item: TypedFilter) -> bool:
    if item.column != "state" or not isinstance(item.value, str):
        return False
    return (item.value.upper() == "FINISHED") is (item.predicate == "!=")
