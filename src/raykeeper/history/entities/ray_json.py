"""JSON as Ray's event stream writes it, turned into JSON as its API writes it. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_IDS = frozenset({"actor_id", "owner_id", "job_id", "node_id", "placement_group_id", "worker_id", "task_id"})
"""Bytes in Ray's protobuf: base64 in events, hex in the API."""

_MOST = 1e18  # of any resource: an exabyte of memory


def optional_json(text: str | None) -> Any:
    """The value, or None where there is no text, or none that is JSON: events are what anybody posted."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def amounts(text: str | None) -> dict[str, float]:
    """Resources by name: of an object its numbers with which one can reckon, whatever else stands in it."""
    return {
        name: float(value)
        for name, value in json_object(text).items()
        if isinstance(value, (int, float)) and -_MOST < value < _MOST
    }


def json_object(text: str | None) -> dict[str, Any]:
    """The members of an object; none where the text holds anything else."""
    value = optional_json(text)
    return value if isinstance(value, dict) else {}


def json_amounts(text: str | None) -> dict[str, float]:
    """Resources by name; what is no number is left out."""
    return {
        name: amount
        for name, amount in json_object(text).items()
        if isinstance(amount, int | float) and not isinstance(amount, bool)
    }


def protobuf_json(text: str | None) -> Any:
    """A protobuf message of an event in the spelling of the state API: snake_case, ids in hex."""
    return _snake(optional_json(text))


def task_time_ms(ns: int | None) -> int | None:
    """The millisecond in which the state API says that something happened to a task.

    Ray divides floating-point numbers, and those are 256 ns apart: the last moments of a millisecond count to the next.
    """
    return None if ns is None else int(ns // 1e6)


def _camel_case(name: str) -> str:
    """As Ray's dashboard renames keys; it also rewrites names of resources, which the frontend is used to."""
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def camel_keys(value: Any) -> Any:
    """All keys of objects, at any depth."""
    if isinstance(value, dict):
        return {_camel_case(name): camel_keys(part) for name, part in value.items()}
    if isinstance(value, list):
        return [camel_keys(part) if isinstance(part, dict) else part for part in value]
    return value


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        renamed = {_HUMP.sub(r"_\1", name).lower(): part for name, part in value.items()}
        return {name: _hex(part) if name in _IDS else _snake(part) for name, part in renamed.items()}
    if isinstance(value, list):
        return [_snake(part) for part in value]
    return value


def _hex(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True).hex()
    except binascii.Error:
        return value
