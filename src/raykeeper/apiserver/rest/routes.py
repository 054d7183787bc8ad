"""Which call a path leads to, by the options in the protobuf files. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.api import annotations_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.rest.protojson import InvalidJson, parse_into
from raykeeper.apiserver.services.table import Call

_VERBS = ("get", "put", "post", "delete", "patch")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Route:
    """A call under its HTTP method and path."""

    call: Call
    verb: str
    path: str
    """With its variables in braces."""
    body: str
    """Field of the request that the body is; empty where there is none."""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(segment[1:-1] for segment in self.segments if segment.startswith("{"))

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The values of the path's variables; None where the path is another."""
        if len(segments) != len(self.segments):
            return None
        found = {}
        for own, given in zip(self.segments, segments, strict=True):
            if own.startswith("{"):
                found[own[1:-1]] = given
            elif own != given:
                return None
        return found

    def request(self, variables: Mapping[str, str], query: Sequence[tuple[str, str]], body: bytes) -> Message:
        """The request that a path, a query and a body stand for. Raises `CallFailed`."""
        message: Message = GetMessageClass(self.call.method.input_type)()
        if self.body:
            inner = getattr(message, self.body)
            inner.SetInParent()
            try:
                parse_into(body, inner)
            except InvalidJson as exc:
                raise CallFailed(Code.InvalidArgument, str(exc)) from exc
        else:
            _read_query(message, query, self.variables)
        for name, text in variables.items():
            setattr(message, name, _text(text))
        return message


def routes_of(calls: Sequence[Call]) -> list[Route]:
    """The route of each call."""
    return [_route(call) for call in calls]


def _route(call: Call) -> Route:
    rule = call.method.GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    if verb not in _VERBS:
        raise LookupError(f"{call.method.full_name} has no path")
    return Route(call, verb.upper(), getattr(rule, verb), rule.body)


def _text(text: str) -> str:
    """Text that may stand in a message. Raises `CallFailed` for bytes that are no UTF-8."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise CallFailed(Code.InvalidArgument, "invalid UTF-8 in the path or query")
    return text


def _read_query(message: Message, query: Sequence[tuple[str, str]], taken: frozenset[str]) -> None:
    """Fill scalar fields from a query; what is no field is passed over, as by the gateway."""
    fields: Mapping[str, Any] = {
        spelling: field for field in message.DESCRIPTOR.fields for spelling in (field.name, field.json_name)
    }
    given: dict[str, list[str]] = {}
    for name, text in query:
        if name in fields and fields[name].name not in taken:
            given.setdefault(name, []).append(text)
    for name, texts in given.items():
        field = fields[name]
        if len(texts) > 1:
            problem = f'too many values for field "{field.name}": {", ".join(texts)}'
            raise CallFailed(Code.InvalidArgument, problem)
        setattr(message, field.name, _query_value(field, texts[0]))


def _query_value(field: Any, text: str) -> str | int:
    """Requests without a body have texts and integers alone."""
    if field.type == field.TYPE_STRING:
        return _text(text)
    bits = 64 if field.type == field.TYPE_INT64 else 32
    parsing = f'parsing field "{field.name}": strconv.ParseInt: parsing {_quoted(text)}'
    if not _INTEGER.fullmatch(text):
        raise CallFailed(Code.InvalidArgument, f"{parsing}: invalid syntax")
    number = int(text) if len(text) <= 20 else 2**64
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise CallFailed(Code.InvalidArgument, f"{parsing}: value out of range")
    return number


_MOST_QUOTED = 200


def _quoted(text: str) -> str:
    escaped = text[:_MOST_QUOTED].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_text(escaped)}"'
