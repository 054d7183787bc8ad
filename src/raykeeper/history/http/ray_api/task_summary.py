"""`/api/v0/tasks/summarize`: attempts counted by function and state, or as a tree of who called whom."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.entities.ray_json import task_time_ms
from raykeeper.history.errors import InvalidQuery, Unanswerable
from raykeeper.history.http.ray_api.captured import CAPTURED_ACTORS, CAPTURED_TASKS, captured_page, captured_rows
from raykeeper.history.http.ray_api.lineage import GROUPS, GROUPS_LIMIT, Actor, Attempt, grouped_tree, lineage_tree
from raykeeper.history.http.ray_api.state_query import (
    MAX_LIMIT,
    StateQuery,
    parse_filters,
    parse_int,
    to_condition,
    typed_filters,
)
from raykeeper.history.http.ray_api.tasks import (
    COLUMNS,
    SOURCE_COLUMNS,
    count_tasks,
    is_in_summary,
    list_relation,
    no_drivers,
    visible_tasks,
)
from raykeeper.history.http.responses import Listed, cached_response, summary_response, with_partial_warning
from raykeeper.history.query.cache import last_poll, tables_version
from raykeeper.history.query.context import Row, SessionContext

BY_FUNCTION = ("func_name", "task_name")
BY_LINEAGE = "lineage"

_TOTAL_OF_TYPE = {
    "NORMAL_TASK": "total_tasks",
    "ACTOR_TASK": "total_actor_tasks",
    "ACTOR_CREATION_TASK": "total_actor_scheduled",
}


def _function_summary(rows: Iterable[Row]) -> dict[str, Any]:
    """Ray's summary by name. Of several types that share a name, the most frequent is shown."""
    rows = list(rows)
    summary: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = summary.setdefault(
            row["func"], {"func_or_class_name": row["func"], "type": row["type"], "state_counts": {}}
        )
        counts = entry["state_counts"]
        counts[row["state"]] = counts.get(row["state"], 0) + row["number"]
    return {"summary": summary, **_totals((row["type"], row["number"]) for row in rows), "summary_by": BY_FUNCTION[0]}


def _totals(counted: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals = dict.fromkeys(_TOTAL_OF_TYPE.values(), 0)
    for kind, tasks in counted:
        if kind in _TOTAL_OF_TYPE:
            totals[_TOTAL_OF_TYPE[kind]] += tasks
    return totals


async def _captured_task_summary(context: SessionContext, query: StateQuery, summary_by: str) -> Response | None:
    """Of tasks in memory; None where there are tables."""
    page = await captured_page(context, replace(query, limit=sys.maxsize, is_detailed=True), CAPTURED_TASKS, COLUMNS)
    if page is None:
        return None
    attempts = [_captured_attempt(row) for row in page.rows]
    numbers = Counter((task.name, task.type, task.state) for task in attempts)
    summary = _function_summary(
        {"func": func, "type": kind, "state": state, "number": number}
        for (func, kind, state), number in numbers.items()
    )
    if summary_by == BY_LINEAGE:
        actors = [
            Actor(row["actor_id"], row["repr_name"] or row["class_name"])
            for row in await captured_rows(context, CAPTURED_ACTORS) or []
        ]
        summary |= {"summary": await asyncio.to_thread(lineage_tree, attempts, actors), "summary_by": BY_LINEAGE}
    elif summary_by not in BY_FUNCTION:
        raise InvalidQuery(f"summary_by={summary_by} is unknown")
    return summary_response(page, summary)


def _captured_attempt(row: Mapping[str, Any]) -> Attempt:
    """From a row of Ray's state API."""
    created = row["creation_time_ms"]
    return Attempt(
        task_id=row["task_id"],
        name=row["name"] or row["func_or_class_name"],
        class_name=row["func_or_class_name"].split(".")[0],
        type=row["type"],
        state=row["state"],
        actor_id=row["actor_id"],
        parent_task_id=row["parent_task_id"],
        created_ms=None if created is None else int(created),
    )


TOO_MANY_GROUPS = f"There are more than {GROUPS_LIMIT} groups of tasks; the smallest are not in this tree."

Summary = tuple[dict[str, Any], tuple[str, ...]]
"""In Ray's spelling, and what is to be said about it."""

TASKS_BY_FUNCTION = """
    SELECT coalesce(nullif(name, ''), func_or_class_name) AS func, type, state, count(*) AS number
    FROM {relation} WHERE {where} GROUP BY func, type, state ORDER BY func, number DESC, type, state
"""

SUMMED_BY_FUNCTION = """
    SELECT coalesce(nullif(name, ''), func_or_class_name) AS func, type, state, sum(number)::BIGINT AS number
    FROM task_summary WHERE {where} GROUP BY func, type, state HAVING sum(number) <> 0
    ORDER BY func, number DESC, type, state
"""

TASKS_BY_LINEAGE = """
    SELECT task_id, coalesce(nullif(name, ''), func_or_class_name) AS func, func_or_class_name, type, state, actor_id,
           parent_task_id, creation_ns
    FROM {relation} WHERE {where} ORDER BY task_id, attempt_number
"""

ACTOR_NAMES = "SELECT actor_id, coalesce(nullif(repr_name, ''), class_name) AS name FROM actors WHERE has_definition"


async def summarize_tasks(request: Request, context: SessionContext) -> Response:
    """The frontend asks for one summary of every job, again and again, so they are remembered. Raises Unanswerable."""
    try:
        parse_int(request.query_params.get("timeout", "30"))
        query = StateQuery(filters=parse_filters(request.query_params))
        summary_by = request.query_params.get("summary_by") or BY_FUNCTION[0]
        session = context.session
        key = (
            "task summary",
            session.id,
            tables_version(session, "task_list", "actors"),
            last_poll(session),
            query,
            summary_by,
        )
        return await cached_response(context.cache, key, lambda: _summarize(context, query, summary_by))
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here


async def _summarize(context: SessionContext, query: StateQuery, summary_by: str) -> Response:
    if captured := await _captured_task_summary(context, query, summary_by):
        return captured
    counts = await _counts(context, query)
    summary, warnings = await _summary(context, query, summary_by, counts.matching)
    return summary_response(with_partial_warning(context.session, replace(counts, warnings=warnings)), summary)


async def _summary(context: SessionContext, query: StateQuery, summary_by: str, attempts: int) -> Summary:
    if summary_by in BY_FUNCTION:
        return await _by_function(context, query), ()
    if summary_by != BY_LINEAGE:
        raise InvalidQuery(f"summary_by={summary_by} is unknown")
    totals = await _by_function(context, query)
    if attempts <= MAX_LIMIT:
        rows = await _matching(context, query, TASKS_BY_LINEAGE)
        actors = [Actor(row["actor_id"], row["name"]) for row in await context.rows(ACTOR_NAMES)]
        tree = await asyncio.to_thread(lineage_tree, [_attempt(row) for row in rows], actors)
        return {**totals, "summary": tree, "summary_by": BY_LINEAGE}, ()
    groups = await _matching(context, query, GROUPS, group_limit=GROUPS_LIMIT + 1)
    warnings = (TOO_MANY_GROUPS,) if len(groups) > GROUPS_LIMIT else ()
    return {**totals, "summary": grouped_tree(groups[:GROUPS_LIMIT]), "summary_by": BY_LINEAGE}, warnings


async def _by_function(context: SessionContext, query: StateQuery) -> dict[str, Any]:
    filters = typed_filters(query.filters, COLUMNS)
    if not is_in_summary(filters):
        return _function_summary(await _matching(context, query, TASKS_BY_FUNCTION))
    where = to_condition(filters, COLUMNS)
    statement = SUMMED_BY_FUNCTION.format(where=f"{no_drivers(query)} AND {where.sql}")
    return _function_summary(await context.rows(statement, where.params))


async def _matching(context: SessionContext, query: StateQuery, statement: str, **params: object) -> list[Row]:
    filters = typed_filters(query.filters, COLUMNS)
    where = to_condition(filters, COLUMNS)
    sql = statement.format(relation=list_relation(filters), where=f"{visible_tasks(query)} AND {where.sql}")
    return await context.rows(sql, {**where.params, **params})


async def _counts(context: SessionContext, query: StateQuery) -> Listed:
    filters = typed_filters(query.filters, COLUMNS)
    source = [item for item in filters if item.column in SOURCE_COLUMNS]
    total = await count_tasks(context, query, source)
    matching = total if len(source) == len(filters) else await count_tasks(context, query, filters)
    return Listed([], total=total, after_source=total, matching=matching)


def _attempt(row: Row) -> Attempt:
    return Attempt(
        task_id=row["task_id"],
        name=row["func"],
        class_name=row["func_or_class_name"].split(".")[0],
        type=row["type"],
        state=row["state"],
        actor_id=row["actor_id"],
        parent_task_id=row["parent_task_id"],
        created_ms=task_time_ms(row["creation_ns"]),
    )
