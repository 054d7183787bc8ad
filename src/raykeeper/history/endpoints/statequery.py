"""What a request to the state API asks for, checked as Ray checks it. Pure.

Ray reads parameters leniently: those it does not know are ignored, and so is a filter without a predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from starlette.datastructures import QueryParams

from raykeeper.history.answers import InvalidQuery, Unanswerable

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
        is_detailed=parse_bool(params.get("detail", "False")),
        excludes_drivers=parse_bool(params.get("exclude_driver", "True")),
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


def parse_bool(text: str) -> bool:
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise InvalidQuery(_not_convertible(text, bool)) from None


def parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidQuery(f"invalid literal for int() with base 10: {text!r}") from None


def parse_filter_int(text: str) -> int:
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
