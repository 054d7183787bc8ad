"""Free JSON inside messages (`google.protobuf.Struct`), and how it is merged over what the other fields say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from raykeeper.api.meta import JSON


def to_plain(struct: Struct) -> JSON:
    """The JSON in a Struct. All its numbers are doubles; whole ones are written as Kubernetes expects them."""
    plain: JSON = _whole_numbers(MessageToDict(struct))
    return plain


def to_struct(plain: Mapping[str, Any]) -> Struct:
    struct = Struct()
    struct.update(plain)
    return struct


def merged(base: JSON, over: Mapping[str, Any]) -> JSON:
    """`base` with `over` on top: objects are merged, lists whose items have names by name, null removes a field."""
    result = dict(base)
    for name, value in over.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged_value(result.get(name), value)
    return result


def _merged_value(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return merged(old, new)
    if isinstance(old, list) and isinstance(new, list) and _are_named(old) and _are_named(new):
        return _merged_by_name(old, new)
    return new


def _are_named(items: list[Any]) -> bool:
    return bool(items) and all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _merged_by_name(old: list[JSON], new: list[JSON]) -> list[JSON]:
    found = {item["name"]: item for item in old}
    for item in new:
        found[item["name"]] = merged(found.get(item["name"], {}), item)
    return list(found.values())


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return value
