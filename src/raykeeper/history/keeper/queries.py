"""From the parameters of a request to a typed query. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.keeper.operation import Q

_NUMBER = re.compile(r"\s*[-+]?[\d._]+(e[-+]?\d+)?\s*", re.IGNORECASE)


def parse_query(given: Iterable[tuple[str, str]], kind: type[Q]) -> Q:
    """The query that these parameters make. Raises InvalidQuery, which names the parameter."""
    pairs = list(given)
    fields = {field.name for field in msgspec.structs.fields(kind)}
    for name, times in Counter(name for name, _ in pairs).items():
        if name not in fields:
            raise InvalidQuery(f"there is no parameter {name!r}; there are: {', '.join(sorted(fields)) or 'none'}")
        if times > 1:
            raise InvalidQuery(f"parameter {name!r} is given {times} times")
    try:
        query = msgspec.convert(dict(pairs), kind, strict=False)  # not strict: numbers come as text
    except msgspec.ValidationError as exc:
        raise InvalidQuery(_told(str(exc))) from exc
    for name, text in pairs:
        if not _is_told_plainly(text, getattr(query, name)):
            raise InvalidQuery(f"parameter {name!r}: {text!r} is no value of it")
    return query


def _is_told_plainly(text: str, value: object) -> bool:
    """Whether the library read what is documented: it takes `null` for none and numbers for moments, too."""
    if isinstance(value, datetime):
        return not _NUMBER.fullmatch(text)
    return value is not None


def _told(message: str) -> str:
    """The library's sentence, with the parameter's name in front."""
    reason, _, place = message.partition(" - at `$.")
    return f"parameter {place.rstrip('`')!r}: {reason[:1].lower()}{reason[1:]}" if place else reason
