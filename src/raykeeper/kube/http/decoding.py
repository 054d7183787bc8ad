"""From the bytes of an answer to objects; a decoder is made once for each type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from raykeeper.api.meta import Resource

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list. Items read as structs share the page's buffer through their `Raw` fields: copy to keep."""

    items: list[T]
    resource_version: str
    token: str
    """Where the next page starts; empty at the end."""
    remaining: int | None
    """How many objects follow this page, where the server counted them."""


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


def decode_one(resource: Resource[T], body: bytes) -> T:
    """One object. Raises `msgspec.DecodeError` where the body is not one."""
    item: T = _decoder(resource.type).decode(body)
    _forget_managers(item)
    return item


def decode_page(resource: Resource[T], body: bytes) -> Page[T]:
    """One page of objects. Raises `msgspec.DecodeError` where the body is not one."""
    answer: _List[T] = _decoder(resource.type, listed=True).decode(body)
    items = answer.items or []
    if resource.type is dict:
        for item in items:
            _forget_managers(item)
    meta = answer.metadata
    return Page(items, meta.resource_version, meta.token, meta.remaining_item_count)


_decoders: dict[tuple[Any, bool], msgspec.json.Decoder[Any]] = {}


def _decoder(kind: Any, *, listed: bool = False) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, or of a list of it."""
    decoder = _decoders.get((kind, listed))
    if decoder is None:
        decoder = _decoders[kind, listed] = msgspec.json.Decoder(_List[kind] if listed else kind)
    return decoder


def _forget_managers(item: object) -> None:
    """Drop `managedFields` of an object read as plain JSON, as the structs do by not naming it."""
    if isinstance(item, dict):
        item.get("metadata", {}).pop("managedFields", None)
