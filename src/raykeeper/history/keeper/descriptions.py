"""The prose of the API's types: what the code says under a field is its description in the OpenAPI document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from raykeeper.api.crd.descriptions import field_docs

Json = dict[str, Any]


def described(components: Json, types: Iterable[Any]) -> Json:
    """The schemas of these types, with a description wherever the code has one and the schema has not."""
    classes = {item.__name__: item for item in _classes(types)}
    return {
        name: _described(schema, classes[name]) if name in classes else schema for name, schema in components.items()
    }


def _described(schema: Json, item: type[Any]) -> Json:
    documented = field_docs(item)
    members = {
        name: {"description": documented[name], **member} if name in documented else member
        for name, member in schema.get("properties", {}).items()
    }
    return {**schema, "properties": members} if members else schema


def _classes(types: Iterable[Any]) -> set[type[Any]]:
    """Every struct and dataclass that values of these types are made of."""
    found: set[type[Any]] = set()
    waiting = list(inspect.multi_type_info(types))
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, inspect.StructType | inspect.DataclassType):
            if kind.cls in found:
                continue
            found.add(kind.cls)
        waiting += _inside(kind)
    return found


def _inside(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a type is made of."""
    for field in msgspec.structs.fields(kind):
        value = getattr(kind, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, inspect.Type):
                yield part
            elif isinstance(part, inspect.Field):
                yield part.type
