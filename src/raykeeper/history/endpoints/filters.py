"""Filters of the state API, by Ray's rules: as conditions of SQL with bound values, or on rows in memory. Pure.

Text is compared without regard to case. What Ray has no value for is either None, which is unequal to everything, or
absent, which matches neither `=` nor `!=`; a column says which.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.endpoints.statequery import Filter, Predicate, parse_bool, parse_filter_int

Kind = Literal["text", "id", "word", "int", "bool"]
"""`id` is stored in lower case and `word` in upper case, so that equality can use the statistics of a file."""

JOB_ID_BYTES, ACTOR_ID_BYTES, TASK_ID_BYTES, NODE_ID_BYTES = 4, 16, 24, 28

_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class FilterColumn:
    """One column that Ray allows in a filter."""

    kind: Kind = "text"
    sql: str = ""
    """Expression over the table; empty: the column's own name."""
    id_bytes: int = 0
    """Ray's GCS reads the value as an id of so many bytes and refuses others."""
    is_absent_if_null: bool = False
    is_optional: bool = False
    """Ray's schema allows None; such columns have other words for a value of another kind."""


Columns = Mapping[str, FilterColumn]


@dataclass(frozen=True)
class TypedFilter:
    """A filter whose column exists and whose value fits it."""

    column: str
    predicate: Predicate
    value: str | int | bool


@dataclass(frozen=True)
class Condition:
    """Part of a WHERE clause, with the values it binds."""

    sql: str
    params: Mapping[str, object]


def typed_filters(filters: Sequence[Filter], columns: Columns) -> tuple[TypedFilter, ...]:
    """Raises InvalidQuery in Ray's words where a column does not exist or a value does not fit."""
    return tuple(_typed(item, columns) for item in filters)


def to_condition(filters: Sequence[TypedFilter], columns: Columns) -> Condition:
    """All filters as one condition; TRUE where there are none."""
    params: dict[str, object] = {}
    parts = []
    for number, item in enumerate(filters):
        name = f"filter_{number}"
        params[name] = _comparable(item, columns[item.column])
        parts.append(_comparison(item, columns[item.column], name))
    return Condition(" AND ".join(parts) or "TRUE", params)


def matches(row: Mapping[str, Any], filters: Sequence[TypedFilter], columns: Columns) -> bool:
    """Whether a row of Ray's own shape passes all filters."""
    return all(_matches(row.get(item.column), item, columns[item.column]) for item in filters)


def _typed(item: Filter, columns: Columns) -> TypedFilter:
    column = columns.get(item.column)
    if column is None:
        raise InvalidQuery(
            f"The given filter column {item.column} is not supported. "
            "Enter filters with \u2013-filter key=value or \u2013-filter key!=value "
            f"Supported filter columns: {{{', '.join(repr(name) for name in sorted(columns))}}}"
        )
    return TypedFilter(item.column, item.predicate, _typed_value(item, column))


def _typed_value(item: Filter, column: FilterColumn) -> str | int | bool:
    if column.id_bytes:
        _check_id(item.value, column.id_bytes)
    if column.kind not in _PARSED:
        return item.value
    parse, words = _PARSED[column.kind]
    try:
        return parse(item.value)
    except InvalidQuery:
        if column.is_optional:
            raise
        raise InvalidQuery(words.format(column=item.column, value=item.value)) from None


_PARSED: Mapping[str, tuple[Callable[[str], int], str]] = {
    "int": (
        parse_filter_int,
        "Invalid filter `--filter {column} {value}` for a int type column. "
        "Please provide an integer filter `--filter {column} [int]`",
    ),
    "bool": (
        parse_bool,
        "Invalid filter `--filter {column} {value}` for a boolean type column. Please provide "
        "`--filter {column} [True|true|1]` for True or `--filter {column} [False|false|0]` for False.",
    ),
}
"""Kinds that are no text: how a value is read, and what Ray says of one that cannot be."""


def _check_id(text: str, length: int) -> None:
    try:
        data = binascii.unhexlify(text)
    except ValueError as error:
        raise InvalidQuery(str(error)) from None
    if len(data) != length:
        raise InvalidQuery(f"ID string needs to have length {length}, got {len(data)}")


def _comparable(item: TypedFilter, column: FilterColumn) -> object:
    if isinstance(item.value, str):
        return {"id": item.value.lower(), "word": item.value.upper()}.get(column.kind, item.value)
    if isinstance(item.value, int) and item.value not in _INT64:
        return None  # equal to nothing that a table can hold
    return item.value


def _comparison(item: TypedFilter, column: FilterColumn, param: str) -> str:
    left = column.sql or item.column
    right = f"${param}"
    if column.kind == "text":
        left, right = f"lower({left})", f"lower({right})"
    if item.predicate == "=":
        return f"{left} = {right}"
    unequal = f"{left} IS DISTINCT FROM {right}"
    return f"({left} IS NOT NULL AND {unequal})" if column.is_absent_if_null else unequal


def _matches(value: object, item: TypedFilter, column: FilterColumn) -> bool:
    if value is None:
        return item.predicate == "!=" and not column.is_absent_if_null
    wanted: object = item.value
    if isinstance(value, str) and isinstance(wanted, str):
        value, wanted = value.lower(), wanted.lower()
    return (value == wanted) is (item.predicate == "=")
