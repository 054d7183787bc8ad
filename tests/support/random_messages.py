"""Random messages of protobuf, made from their descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from google.protobuf.message import Message
from hypothesis import strategies as st

Texts = Mapping[str, st.SearchStrategy[str]]
"""Fields by name that are mostly there, and what texts are in them, if any."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_ANY_TEXTS: Texts = MappingProxyType({})
_DEEPEST = 4
_STRING = 9
_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    5: st.integers(-(2**31), 2**31 - 1),  # int32
    13: st.integers(0, 2**32 - 1),  # uint32
    3: st.integers(-(2**63), 2**63 - 1),  # int64
    4: st.integers(0, 2**64 - 1),  # uint64
    2: st.floats(width=32, allow_nan=False),
    8: st.booleans(),
    _STRING: texts,
}


@st.composite
def messages(draw: st.DrawFn, kind: Any, known: Texts = _ANY_TEXTS, depth: int = 0) -> Message:
    """Any message of a kind, with each field there or not; those that are known mostly are."""
    made: Message = kind()
    for field in made.DESCRIPTOR.fields:
        is_there = draw(st.integers(0, 15)) > 0 if field.name in known else draw(st.integers(0, 3)) == 0
        if is_there and depth < _DEEPEST:
            _fill(draw, made, field, known, depth)
    return made


def _fill(draw: st.DrawFn, message: Any, field: Any, known: Texts, depth: int) -> None:
    target = getattr(message, field.name)
    if field.message_type and field.message_type.GetOptions().map_entry:
        keys = draw(st.lists(texts, min_size=field.name in known, max_size=2))
        _fill_map(draw, target, field.message_type.fields_by_name["value"], keys, known)
    elif field.is_repeated:
        for _ in range(draw(st.integers(0, 2))):
            if field.message_type:
                _fill_message(draw, target.add(), known, depth)
            else:
                target.append(draw(_scalar(field, known)))
    elif field.message_type:
        _fill_message(draw, target, known, depth)
    elif field.enum_type:
        setattr(message, field.name, draw(st.integers(0, 5)))
    else:
        setattr(message, field.name, draw(_scalar(field, known)))


def _fill_map(draw: st.DrawFn, target: Any, value: Any, keys: list[str], known: Texts) -> None:
    for key in keys:
        if value.message_type:
            _fill_message(draw, target[key], known, _DEEPEST - 1)
        else:
            target[key] = draw(_scalar(value, known))


def _scalar(field: Any, known: Texts) -> st.SearchStrategy[Any]:
    return known.get(field.name, texts) if field.type == _STRING else _SCALARS[field.type]


def _fill_message(draw: st.DrawFn, target: Any, known: Texts, depth: int) -> None:
    if target.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        target.seconds = draw(st.integers(-62135596800, 253402300799))
    elif target.DESCRIPTOR.full_name == "google.protobuf.Struct":
        target.update({"a": draw(texts), "b": draw(st.integers(0, 5)), "c": {"d": [None, True]}})
    else:
        target.SetInParent()
        target.CopyFrom(draw(messages(type(target), known, depth + 1)))
