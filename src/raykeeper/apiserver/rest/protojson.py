"""Messages as JSON and back, as KubeRay's gateway writes and reads them.

Written: names in camel case, enums as numbers, 64-bit integers as strings, nothing that is zero or empty. Read: names
in either spelling, enums by name or number; what is not known is passed over. `google.protobuf.json_format` agrees but
for a few cases, and takes several times as long for a list of clusters.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from raykeeper.apiserver.translate.quantities import shortest_float

LAST_KUBERAY_FIELD = 1000
LAST_FIELD = 2**29 - 1
DEEPEST = 100
"""Messages inside messages. The API's own have seven levels, and free JSON in them a dozen."""

Encoder = Callable[[Any], Any]
Field = Any
"""A `FieldDescriptor`: stubs of protobuf say that each of its parts may be missing."""
_64_BIT = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_TYPE_NAMES = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_UINT32: "uint32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT64: "uint64",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_ENUM: "enum",
}
_WELL_KNOWN = frozenset({"google.protobuf.Timestamp", "google.protobuf.Struct", "google.protobuf.Empty"})


class InvalidJson(ValueError):
    """A body that is not the message asked for."""


def to_json(message: Message, *, with_additions: bool = False) -> bytes:
    """The body of an answer. Fields that KubeRay does not have are left out unless they are asked for: its own Go
    client refuses an answer with a field that it does not know."""
    return msgspec.json.encode(_to_plain(message) if with_additions else _to_kuberay_plain(message))


def _to_plain(message: Message) -> Any:
    """The JSON value of a whole message."""
    return _plain_fields(message, _encoders_of(message.DESCRIPTOR, _all_encoders, _to_plain, LAST_FIELD))


def _to_kuberay_plain(message: Message) -> Any:
    """The JSON value of a message in KubeRay's fields alone."""
    encoders = _encoders_of(message.DESCRIPTOR, _kuberay_encoders, _to_kuberay_plain, LAST_KUBERAY_FIELD)
    return _plain_fields(message, encoders)


def _plain_fields(message: Message, encoders: Encoders | None) -> Any:
    if encoders is None:
        # Most are moments; the general way takes six times as long for one.
        return message.ToJsonString() if isinstance(message, Timestamp) else json_format.MessageToDict(message)
    plain = {}
    for field, value in message.ListFields():
        if (found := encoders.get(field.number)) is not None:
            plain[found[0]] = found[1](value)
    return plain


Encoders = Mapping[int, tuple[str, Encoder]]
"""The name and encoder of each field, by its number."""
_all_encoders: dict[str, Encoders] = {}
_kuberay_encoders: dict[str, Encoders] = {}


def _encoders_of(kind: Any, made: dict[str, Encoders], inner: Encoder, last: int) -> Encoders | None:
    """Those of a kind of message, made once; None for kinds that have a form of their own in JSON."""
    found = made.get(kind.full_name)
    if found is None and kind.full_name not in _WELL_KNOWN:
        fields = [field for field in kind.fields if field.number <= last]
        found = made[kind.full_name] = {
            field.number: (field.json_name, _field_encoder(field, inner)) for field in fields
        }
    return found


def _field_encoder(field: Field, inner: Encoder) -> Encoder:
    if _is_map(field):
        value = _value_encoder(field.message_type.fields_by_name["value"], inner)
        return lambda items: {str(key): value(items[key]) for key in sorted(items)}
    value = _value_encoder(field, inner)
    return (lambda items: [value(item) for item in items]) if field.is_repeated else value


def _value_encoder(field: Field, inner: Encoder) -> Encoder:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return inner
    if field.cpp_type in _64_BIT:
        return str
    if field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT:
        return _float32
    return _itself


def _itself(value: Any) -> Any:
    return value


def _float32(value: float) -> float | int | str:
    if not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if value == 0:
        return value  # it may be a negative zero, which is a number of its own
    short = shortest_float(value)
    return int(short) if short.is_integer() and abs(short) < 1e21 else short


def _is_map(field: Field) -> bool:
    return field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry


def parse_into(body: bytes, message: Message) -> None:
    """Fill a message from the first JSON value of a body; nothing at all is an empty message. Raises `InvalidJson`."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidJson("invalid UTF-8 in the body") from exc
    text = text.lstrip(" \t\r\n")
    if not text:
        return
    try:
        value, _ = _decoder.raw_decode(text)
    except RecursionError as exc:
        raise InvalidJson("exceeded max depth") from exc
    except json.JSONDecodeError as exc:
        raise InvalidJson(f"{exc.msg} (line {exc.lineno}:{exc.colno})") from exc
    except ValueError as exc:  # a number of thousands of digits
        raise InvalidJson(str(exc)) from exc
    _fill(message, value, 0)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidJson(f'duplicate field "{name}"')
        found[name] = value
    return found


def _refuse_constant(text: str) -> Any:
    raise InvalidJson(f"invalid value {text}")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _fill(message: Message, value: Any, depth: int) -> None:
    kind = message.DESCRIPTOR
    if depth > DEEPEST:
        raise InvalidJson("exceeded max depth")
    if kind.full_name in _WELL_KNOWN:
        try:
            json_format.ParseDict(value, message, max_recursion_depth=DEEPEST)
        except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as exc:
            raise InvalidJson(f"invalid {kind.full_name} value") from exc
        return
    if not isinstance(value, dict):
        raise InvalidJson(f"unexpected token {_shown(value)}")
    fields, seen = _fields_of(kind), set()
    for name, item in value.items():
        field = fields.get(name)
        if field is None or item is None:
            continue
        if field.number in seen:
            raise InvalidJson(f'duplicate field "{name}"')
        seen.add(field.number)
        _fill_field(message, field, item, depth)


_fields: dict[str, Mapping[str, Field]] = {}


def _fields_of(kind: Any) -> Mapping[str, Field]:
    """Fields by both of their spellings."""
    found = _fields.get(kind.full_name)
    if found is None:
        found = {spelling: field for field in kind.fields for spelling in (field.name, field.json_name)}
        _fields[kind.full_name] = found
    return found


def _fill_field(message: Message, field: Field, value: Any, depth: int) -> None:
    if _is_map(field):
        _fill_map(getattr(message, field.name), field, value, depth)
    elif field.is_repeated:
        _fill_list(getattr(message, field.name), field, value, depth)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill(inner, value, depth + 1)
    elif (scalar := parse_scalar(field, value)) is not None:
        setattr(message, field.name, scalar)


def _fill_map(target: Any, field: Field, value: Any, depth: int) -> None:
    if not isinstance(value, dict):
        raise InvalidJson(f"unexpected token {_shown(value)} for map field {field.json_name}")
    item_field = field.message_type.fields_by_name["value"]
    for key, item in value.items():
        if item_field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            _fill(target[key], item, depth + 1)
        elif (scalar := parse_scalar(item_field, item)) is not None:
            target[key] = scalar


def _fill_list(target: Any, field: Field, value: Any, depth: int) -> None:
    if not isinstance(value, list):
        raise InvalidJson(f"unexpected token {_shown(value)} for list field {field.json_name}")
    for item in value:
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            _fill(target.add(), item, depth + 1)
        elif (scalar := parse_scalar(field, item)) is not None:
            target.append(scalar)


def parse_scalar(field: Field, value: Any) -> Any:
    """The value of a field; None for the name of an enum's value that is not known. Raises `InvalidJson`."""
    parse = _PARSERS[field.cpp_type]
    parsed = parse(field, value)
    if parsed is _WRONG:
        kind = _TYPE_NAMES[field.cpp_type]
        raise InvalidJson(f"invalid value for {kind} field {field.json_name}: {_shown(value)}")
    return parsed


_WRONG = object()


def _parse_string(_: Field, value: Any) -> Any:
    if not isinstance(value, str):
        return _WRONG
    # A lone half of a surrogate pair is no text: it cannot be sent on.
    return value if value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value) else _WRONG


def _parse_bool(_: Field, value: Any) -> Any:
    return value if isinstance(value, bool) else _WRONG


def _parse_integer(field: Field, value: Any) -> Any:
    number = _as_number(value)
    if number is None or (isinstance(number, float) and not number.is_integer()):
        return _WRONG
    lowest, highest = _RANGES[field.cpp_type]
    return int(number) if lowest <= number <= highest else _WRONG


def _parse_float(field: Field, value: Any) -> Any:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    number = _as_number(value)
    if number is None:
        return _WRONG
    try:
        is_fitting = field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE or bool(struct.pack("f", float(number)))
    except OverflowError:
        return _WRONG
    return float(number) if is_fitting else _WRONG


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _parse_enum(field: Field, value: Any) -> Any:
    if isinstance(value, str):
        known = field.enum_type.values_by_name.get(value)
        return None if known is None else known.number
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        return _WRONG
    return value


_PARSERS: Mapping[int, Callable[[Field, Any], Any]] = {
    FieldDescriptor.CPPTYPE_STRING: _parse_string,
    FieldDescriptor.CPPTYPE_BOOL: _parse_bool,
    FieldDescriptor.CPPTYPE_ENUM: _parse_enum,
    FieldDescriptor.CPPTYPE_FLOAT: _parse_float,
    FieldDescriptor.CPPTYPE_DOUBLE: _parse_float,
    **dict.fromkeys(_RANGES, _parse_integer),
}

_SHOWN_CHARACTERS = 100


def _shown(value: Any) -> str:
    """A value in a message, as JSON begins it."""
    if isinstance(value, dict | list):
        return "{" if isinstance(value, dict) else "["
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
