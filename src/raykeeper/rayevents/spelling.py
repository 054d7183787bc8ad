"""Events in the names of Ray's protobuf, rewritten in the names that its JSON usually has. Pure.

Ray writes `task_definition_event` instead of `taskDefinitionEvent` where
`RAY_DASHBOARD_AGGREGATOR_AGENT_PRESERVE_PROTO_FIELD_NAME` is set.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_UNDERSCORE = re.compile(r"_([a-z0-9])")
_MAPS = frozenset(
    {
        "custom_fields",
        "custom_resources",
        "label_selector",
        "labels",
        "metadata",
        "ref_ids",
        "required_resources",
        "resources",
        "unit_resources",
    }
)
"""Fields whose keys are people's own words, which have one spelling only."""
_NO_MAP = "label_constraints"
"""A label selector is a map, but one within a fallback strategy is a message with this field."""


MAX_ELEMENTS = 200_000
"""Of an event that is taken apart; Ray's have some dozens. One with more stays as it is."""


def in_usual_names(line: bytes) -> bytes:
    """The event in camelCase; one that is so already, or is no JSON that can be read, stays byte for byte."""
    if line.count(b",") + line.count(b"[") + line.count(b"{") > MAX_ELEMENTS:
        return line
    try:
        event = msgspec.json.decode(line)
        if not isinstance(event, dict) or "event_type" not in event or "eventType" in event:
            return line
        return msgspec.json.encode(_renamed(event))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {_camel_case(name): part if _is_map(name, part) else _renamed(part) for name, part in value.items()}


def _is_map(name: str, value: Any) -> bool:
    return name in _MAPS and not (isinstance(value, dict) and _NO_MAP in value)


def _camel_case(name: str) -> str:
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name)
