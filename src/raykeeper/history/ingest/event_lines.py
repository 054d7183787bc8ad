"""Which lines DuckDB can read as events: the types of its statement once more, for one line at a time.

A query says that some line of a file does not fit, and not which. To try lines by halves takes seconds for each bad
one, and whoever posts events to a collector can post thousands of them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from raykeeper.history.ingest.events_sql import CLUSTER_PAYLOADS, ENVELOPE, TASK_PAYLOADS

_Base64 = Annotated[
    str, msgspec.Meta(pattern=r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", max_length=256)
]
_LEAP_YEAR = "(?:19(?:7[26]|8[048]|9[26])|20(?:[02468][048]|[13579][26])|21(?:0[48]|[2468][048]|[13579][26]))"
_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_TIME = rf"^(?:(?:19[7-9]|2[01]\d)\d-{_DAY}|{_LEAP_YEAR}-02-29)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{1,9}})?Z$"
"""Days that the calendar has, in years that nanoseconds reach."""
_Time = Annotated[str, msgspec.Meta(pattern=_TIME)]
_INT64 = r"(?:\d{1,18}|[0-8]\d{18})$"  # as protobuf writes 64 bits: in quotes
_Digits = Annotated[str, msgspec.Meta(pattern=f"^-?{_INT64}")]
_SCALARS: dict[str, Any] = {
    "VARCHAR": str,
    "BOOLEAN": bool,
    "TIMESTAMP_NS": _Time,
    "INTEGER": Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)],
    "BIGINT": Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)] | _Digits,
    "UBIGINT": Annotated[int, msgspec.Meta(ge=0, le=1 << 62)] | Annotated[str, msgspec.Meta(pattern=f"^{_INT64}")],
}
_PLAIN_IDS = frozenset({"instanceId"})
"""Those that Ray does not encode; every other id is base64."""


def fits(line: bytes) -> bool:
    """Whether a line is an event, in types that the statement takes."""
    try:
        _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return line.startswith(b"{")


def _type(name: str, sql: str) -> Any:
    """The type of a column or member; anything may be null or missing."""
    if sql.endswith("[]"):
        return list[_type(name, sql[:-2])] | None  # type: ignore[misc]
    if sql.startswith("STRUCT("):
        return _struct(name, dict(members(sql))) | None
    if sql == "JSON":
        return msgspec.Raw  # whatever it holds, null too; nothing of it is built
    if name == "timestamp":
        return _Time | None
    is_id = name.endswith("Id") and name not in _PLAIN_IDS
    return (_Base64 if is_id and sql == "VARCHAR" else _SCALARS[sql]) | None


def _struct(name: str, members: dict[str, str]) -> Any:
    fields = [(member, _type(member, sql), msgspec.UNSET) for member, sql in members.items()]
    return msgspec.defstruct(name, fields, gc=False)


def members(struct: str) -> list[tuple[str, str]]:
    """Names and types of a struct's members."""
    text = struct.removeprefix("STRUCT(")[:-1]
    parts, depth, start = list[str](), 0, 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    named = (part.strip().partition(" ") for part in [*parts, text[start:]])
    return [(name, sql) for name, _, sql in named]


_decode = msgspec.json.Decoder(_struct("Event", {**ENVELOPE, **TASK_PAYLOADS, **CLUSTER_PAYLOADS})).decode
