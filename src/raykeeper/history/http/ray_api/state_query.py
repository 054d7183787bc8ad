"""What a request to the state API asks for, and its filters by Ray's rules: as SQL with bound values, or on rows. Pure.

Text is compared without regard to case. What Ray has no value for is either None, which is unequal to everything, or
absent, which matches neither `=` nor `!=`; a column says which.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from starlette.datastructures import QueryParams

from raykeeper.history.errors import InvalidQuery, Unanswerable

DEFAULT_LIMIT = 100
MAX_LIMIT = 10_000  # RAY_MAX_LIMIT_FROM_API_SERVER of a Ray that was not told otherwise

Predicate = Literal["=", "!="]

_BOOLEANS = {"False": False, "false": False, "0": False, "True": True, "true": True, "1": True}


@dataclass(frozen=True)
class Filter:
    """`column predicate value`, the value still as text."""

    column: str
    predicate: Predicate
    value: str


@dataclass(frozen=True)
class StateQuery:
    filters: tuple[Filter, ...] = ()
    limit: int = DEFAULT_LIMIT
    is_detailed: bool = False
    excludes_drivers: bool = True


def parse_state_query(params: QueryParams) -> StateQuery:
    """Raises InvalidQuery (400), or Unanswerable (500) where Ray fails on it too."""
    limit = _parse_limit(params.get("limit"))
    parse_int(params.get("timeout", "30"))
    return StateQuery(
        filters=parse_filters(params),
        limit=limit,
        is_detailed=_parse_bool(params.get("detail", "False")),
        excludes_drivers=_parse_bool(params.get("exclude_driver", "True")),
    )


def parse_filters(params: QueryParams) -> tuple[Filter, ...]:
    """Filters are repeated triples, matched by their place."""
    keys, predicates, values = (params.getlist(name) for name in ("filter_keys", "filter_predicates", "filter_values"))
    if len(keys) != len(values):
        raise Unanswerable(f"{len(keys)} filter_keys but {len(values)} filter_values")
    return tuple(
        Filter(key.lower(), _parse_predicate(predicate), value)
        for key, predicate, value in zip(keys, predicates, values, strict=False)
    )


def _parse_bool(text: str) -> bool:
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise InvalidQuery(_not_convertible(text, bool)) from None


def parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidQuery(f"invalid literal for int() with base 10: {text!r}") from None


def _parse_filter_int(text: str) -> int:
    """As parse_int, in the words Ray has for filters."""
    try:
        return int(text)
    except ValueError:
        raise InvalidQuery(_not_convertible(text, int)) from None


def _parse_limit(text: str | None) -> int:
    limit = DEFAULT_LIMIT if text is None else parse_int(text)
    if limit > MAX_LIMIT:
        raise InvalidQuery(
            f"Given limit {limit} exceeds the supported limit {MAX_LIMIT}. Use a lower limit, or set the "
            "`RAY_MAX_LIMIT_FROM_API_SERVER` environment variable to a larger value."
        )
    if limit < 0:
        raise InvalidQuery("Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return limit


def _parse_predicate(text: str) -> Predicate:
    if text not in ("=", "!="):
        raise InvalidQuery(f"Unsupported filter predicate {text} is given. Available predicates: =, !=.")
    return cast(Predicate, text)


def _not_convertible(text: str, kind: type) -> str:
    return f"Failed to convert a value {text} of type <class 'str'> to {kind}"


Kind = Literal["text", "id", "word", "int", "bool"]
"""`id` is stored in lower case and `word` in upper case, so that equality can use the statistics of a file."""


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
        _parse_filter_int,
        "Invalid filter `--filter {column} {value}` for a int type column. "
        "Please provide an integer filter `--filter {column} [int]`",
    ),
    "bool": (
        _parse_bool,
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
