"""The type hints of a struct, taken apart into what Python sees and what OpenAPI must know beyond it."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from raykeeper.api.markers import Required, ServerDefault
from raykeeper.api.structs import ApiStruct

M = TypeVar("M")


@dataclass(frozen=True)
class Hint:
    """A type as written: `Annotated[int, Format("int32")] | None` is the type int with one marker."""

    bare: Any
    markers: tuple[Any, ...] = ()

    @classmethod
    def of(cls, written: Any) -> Hint:
        if get_origin(written) is Annotated:
            inner = cls.of(written.__origin__)
            return cls(inner.bare, (*inner.markers, *written.__metadata__))
        if get_origin(written) in (Union, types.UnionType):
            members = [member for member in get_args(written) if member is not types.NoneType]
            # None stands for a field that is missing, which is for the list of required fields to say.
            return cls.of(members[0]) if len(members) == 1 else cls(written)
        return cls(written)

    def marked(self, marker: type[M]) -> list[M]:
        """The markers of one class, in the order they were written."""
        return [item for item in self.markers if isinstance(item, marker)]


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    name: str
    json_name: str
    hint: Hint
    default: Any

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT or bool(self.hint.marked(Required))

    @property
    def server_default(self) -> Any:
        """What the API server fills in; None for nothing."""
        return self.default if self.hint.marked(ServerDefault) else None


def fields_of(struct: type[ApiStruct]) -> Iterator[Field]:
    """The fields of a struct in the order they are written."""
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        # A factory makes empty maps only, and those are no value that a schema would name.
        default = None if field.default_factory is not msgspec.NODEFAULT else field.default
        yield Field(field.name, field.encode_name, Hint.of(hints[field.name]), default)
