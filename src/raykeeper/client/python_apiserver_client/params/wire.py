"""How parameters become JSON and back. Each field says in one place what it is called there and how it is read."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from raykeeper.errors import Unavailable


@dataclasses.dataclass(frozen=True)
class _Wire:
    name: str
    decode: Callable[[Any], Any] | None
    absent: Any
    is_sent: Callable[[Any], bool]


def wire(
    name: str,
    decode: Callable[[Any], Any] | None = None,
    *,
    default: Any = dataclasses.MISSING,
    absent: Any = None,
    is_sent: Callable[[Any], bool] = lambda value: value is not None,
) -> Any:
    """A field of `Parameters`.

    `decode` makes its value of JSON, `absent` is its value where the answer has none (a server leaves zeros out), and
    `is_sent` says which values are written at all.
    """
    return dataclasses.field(default=default, metadata={"wire": _Wire(name, decode, absent, is_sent)})


def output(name: str, decode: Callable[[Any], Any] | None = None) -> Any:
    """A field that a server fills in and nobody sends."""
    return wire(name, decode, default=None, is_sent=lambda _: False)


def other_name(field: str) -> Any:
    """An attribute that KubeRay calls otherwise than the argument of the same value."""
    return property(lambda self: getattr(self, field), lambda self, value: setattr(self, field, value))


def either(answer: Mapping[str, Any], name: str, absent: Any = None) -> Any:
    """A value by its name in JSON, or as the protobuf files spell it, which servers take as well."""
    snake = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
    return answer.get(name, answer.get(snake, absent))


def listed(decode: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [decode(value) for value in values]


def mapped(decode: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    return lambda values: {name: decode(value) for name, value in values.items()}


def numbered(kind: type[enum.Enum]) -> Callable[[Any], enum.Enum]:
    """Of an enumeration whose numbers are sent."""
    return lambda value: kind(int(value))


class Parameters:
    """Base of everything that is sent to an API server or comes from one."""

    SHOWN_AS: ClassVar[str] = ""
    """The end of `to_string`."""
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def to_dict(self) -> dict[str, Any]:
        """Itself as JSON of a request."""
        values = ((spec, getattr(self, name)) for name, spec in _wires(self))
        return {spec.name: _to_json(value) for spec, value in values if spec.is_sent(value)}

    def to_string(self) -> str:
        """Itself for people: every value that is set."""
        values = {name: getattr(self, name) for name, spec in _wires(self) if _is_set(getattr(self, name), spec)}
        return values_to_string(values) + self.SHOWN_AS

    @classmethod
    def from_dict(cls, answer: Mapping[str, Any]) -> Self:
        """What a server answered, as it is: defaults and checks are for what is sent. Raises Unavailable."""
        made = cls.__new__(cls)
        for name, spec in _wires(cls):
            value = either(answer, spec.name)
            setattr(made, name, spec.absent if value is None else _decoded(cls, spec, value))
        return made


def _wires(parameters: Parameters | type[Parameters]) -> list[tuple[str, _Wire]]:
    fields = parameters.__dataclass_fields__.values()
    return [(field.name, field.metadata["wire"]) for field in fields if "wire" in field.metadata]


def _decoded(cls: type[Parameters], spec: _Wire, value: Any) -> Any:
    try:
        return spec.decode(value) if spec.decode else value
    except (AttributeError, TypeError, ValueError) as exc:
        problem = f"{spec.name} of a {cls.__name__} cannot be {str(value)[:100]!r}"
        raise Unavailable("the API server", problem) from exc


def _to_json(value: Any) -> Any:
    match value:
        case Parameters():
            return value.to_dict()
        case enum.Enum():
            return value.value
        case list():
            return [_to_json(one) for one in value]
        case dict():
            return {name: _to_json(one) for name, one in value.items()}
        case _:
            return value


def _is_set(value: Any, spec: _Wire) -> bool:
    return value is not None and value != spec.absent


def values_to_string(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} = {_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    match value:
        case enum.Enum():
            return value.name
        case list():
            return "[" + ", ".join(_shown(one) for one in value) + "]"
        case dict() if any(isinstance(one, Parameters) for one in value.values()):
            return "{" + ", ".join(f"{name} = {_shown(one)}" for name, one in value.items()) + "}"
        case _ if hasattr(value, "to_string"):
            return "{" + str(value.to_string()) + "}"
        case _:
            return str(value)
