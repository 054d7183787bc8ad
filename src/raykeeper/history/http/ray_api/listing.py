"""One list of the state API: filtered, counted and cut to the limit, from a table or from rows in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from raykeeper.history.http.ray_api.state_query import (
    Columns,
    Condition,
    StateQuery,
    TypedFilter,
    matches,
    to_condition,
    typed_filters,
)
from raykeeper.history.http.responses import Listed, list_response, with_partial_warning
from raykeeper.history.query.context import Row, SessionContext

ROWS_AT_ONCE = 500  # a few milliseconds of work

PAGE = "SELECT * FROM {relation} WHERE {where} ORDER BY {order} LIMIT $row_limit"

COUNTS = """
    SELECT count(*) AS total, count(*) FILTER (WHERE {source}) AS after_source,
           count(*) FILTER (WHERE {where}) AS matching
    FROM {relation}
"""


@dataclass(frozen=True)
class TableList:
    """How a list is read from one table. The texts are ours; what a request brings is bound."""

    columns: Columns
    relation: str
    """A table's name, or a sub-query in brackets."""
    order: str
    source_columns: frozenset[str] = frozenset()
    """Filters with `=` that Ray's GCS applies itself, so that they lower `num_after_truncation`."""


async def list_answer(context: SessionContext, page: Listed) -> Response:
    """One page as Ray's state API answers it. Many rows are encoded in a thread, since other requests wait."""
    listed = with_partial_warning(context.session, page)
    if len(listed.rows) + len(listed.encoded) <= ROWS_AT_ONCE:
        return list_response(listed)
    return await asyncio.to_thread(list_response, listed)


async def shaped(rows: Sequence[Row], shape: Callable[[Row], Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows in Ray's spelling. Many of them are not made in one go, since other requests wait meanwhile."""
    if len(rows) <= ROWS_AT_ONCE:
        return [shape(row) for row in rows]
    return await asyncio.to_thread(lambda: [shape(row) for row in rows])


async def list_table(
    context: SessionContext, query: StateQuery, table: TableList, shape: Callable[[Row], Mapping[str, Any]]
) -> Listed:
    """The rows that match, in order, up to the limit; counts are exact."""
    filters = typed_filters(query.filters, table.columns)
    where = to_condition(filters, table.columns)
    statement = PAGE.format(relation=table.relation, where=where.sql, order=table.order)
    rows = await context.rows(statement, {**where.params, "row_limit": query.limit})
    counts = await _count(context, table, where, _source_condition(filters, table))
    return Listed(await shaped(rows, shape), counts["total"], counts["after_source"], counts["matching"])


def list_rows(
    rows: Sequence[Mapping[str, Any]],
    query: StateQuery,
    columns: Columns,
    shown: Sequence[str],
    *,
    key: Callable[[Mapping[str, Any]], Any],
) -> Listed:
    """The rows in memory that match, with the columns shown, sorted by `key`, up to the limit."""
    filters = typed_filters(query.filters, columns)
    matching = sorted((row for row in rows if matches(row, filters, columns)), key=key)
    page = [{name: row.get(name) for name in shown} for row in matching[: query.limit]]
    return Listed(page, total=len(rows), after_source=len(rows), matching=len(matching))


def _source_condition(filters: Sequence[TypedFilter], table: TableList) -> Condition:
    pushed = [item for item in filters if item.predicate == "=" and item.column in table.source_columns]
    condition = to_condition(pushed, table.columns)
    renamed = {name.replace("filter_", "source_"): value for name, value in condition.params.items()}
    return Condition(condition.sql.replace("$filter_", "$source_"), renamed)


async def _count(context: SessionContext, table: TableList, where: Condition, source: Condition) -> Row:
    statement = COUNTS.format(relation=table.relation, where=where.sql, source=source.sql)
    [counts] = await context.rows(statement, {**where.params, **source.params})
    return counts
