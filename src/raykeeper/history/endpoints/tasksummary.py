"""`/api/v0/tasks/summarize`: attempts counted by function and state, or as a tree of who called whom."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery, Listed, Unanswerable, summary_response
from raykeeper.history.asked import Asked, Row
from raykeeper.history.endpoints.captured_summary import captured_task_summary
from raykeeper.history.endpoints.filters import to_condition, typed_filters
from raykeeper.history.endpoints.functionsummary import BY_FUNCTION, BY_LINEAGE, function_summary
from raykeeper.history.endpoints.grouped_lineage import GROUPS, GROUPS_LIMIT, grouped_tree
from raykeeper.history.endpoints.lineage import Actor, Attempt, lineage_tree
from raykeeper.history.endpoints.remembered import RememberedBodies, answer_remembered, last_poll, version_of
from raykeeper.history.endpoints.statequery import MAX_LIMIT, StateQuery, parse_filters, parse_int
from raykeeper.history.endpoints.tasks import (
    COLUMNS,
    SOURCE_COLUMNS,
    count_tasks,
    is_in_summary,
    list_relation,
    no_drivers,
    visible_tasks,
)
from raykeeper.history.partial import told_if_partial

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

_remembered = RememberedBodies()


async def summarize_tasks(request: Request, asked: Asked) -> Response:
    """The frontend asks for one summary of every job, again and again, so they are remembered. Raises Unanswerable."""
    try:
        parse_int(request.query_params.get("timeout", "30"))
        query = StateQuery(filters=parse_filters(request.query_params))
        summary_by = request.query_params.get("summary_by") or BY_FUNCTION[0]
        session = asked.session
        key = (session.id, version_of(session, "task_list", "actors"), last_poll(session), query, summary_by)
        return await answer_remembered(_remembered, key, lambda: _summarize(asked, query, summary_by))
    except InvalidQuery as exc:
        raise Unanswerable(str(exc)) from exc  # Ray catches nothing here


async def _summarize(asked: Asked, query: StateQuery, summary_by: str) -> Response:
    if captured := await captured_task_summary(asked, query, summary_by):
        return captured
    counts = await _counts(asked, query)
    summary, warnings = await _summary(asked, query, summary_by, counts.matching)
    return summary_response(told_if_partial(asked.session, replace(counts, warnings=warnings)), summary)


async def _summary(asked: Asked, query: StateQuery, summary_by: str, attempts: int) -> Summary:
    if summary_by in BY_FUNCTION:
        return await _by_function(asked, query), ()
    if summary_by != BY_LINEAGE:
        raise InvalidQuery(f"summary_by={summary_by} is unknown")
    totals = await _by_function(asked, query)
    if attempts <= MAX_LIMIT:
        rows = await _matching(asked, query, TASKS_BY_LINEAGE)
        actors = [Actor(row["actor_id"], row["name"]) for row in await asked.rows(ACTOR_NAMES)]
        tree = await asyncio.to_thread(lineage_tree, [_attempt(row) for row in rows], actors)
        return {**totals, "summary": tree, "summary_by": BY_LINEAGE}, ()
    groups = await _matching(asked, query, GROUPS, group_limit=GROUPS_LIMIT + 1)
    warnings = (TOO_MANY_GROUPS,) if len(groups) > GROUPS_LIMIT else ()
    return {**totals, "summary": grouped_tree(groups[:GROUPS_LIMIT]), "summary_by": BY_LINEAGE}, warnings


async def _by_function(asked: Asked, query: StateQuery) -> dict[str, Any]:
    filters = typed_filters(query.filters, COLUMNS)
    if not is_in_summary(filters):
        return function_summary(await _matching(asked, query, TASKS_BY_FUNCTION))
    where = to_condition(filters, COLUMNS)
    statement = SUMMED_BY_FUNCTION.format(where=f"{no_drivers(query)} AND {where.sql}")
    return function_summary(await asked.rows(statement, where.params))


async def _matching(asked: Asked, query: StateQuery, statement: str, **params: object) -> list[Row]:
    filters = typed_filters(query.filters, COLUMNS)
    where = to_condition(filters, COLUMNS)
    sql = statement.format(relation=list_relation(filters), where=f"{visible_tasks(query)} AND {where.sql}")
    return await asked.rows(sql, {**where.params, **params})


async def _counts(asked: Asked, query: StateQuery) -> Listed:
    filters = typed_filters(query.filters, COLUMNS)
    source = [item for item in filters if item.column in SOURCE_COLUMNS]
    total = await count_tasks(asked, query, source)
    matching = total if len(source) == len(filters) else await count_tasks(asked, query, filters)
    return Listed([], total=total, after_source=total, matching=matching)


def _attempt(row: Row) -> Attempt:
    created = row["creation_ns"]
    return Attempt(
        task_id=row["task_id"],
        name=row["func"],
        class_name=row["func_or_class_name"].split(".")[0],
        type=row["type"],
        state=row["state"],
        actor_id=row["actor_id"],
        parent_task_id=row["parent_task_id"],
        created_ms=None if created is None else created // 1_000_000,
    )
