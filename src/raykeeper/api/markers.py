"""What OpenAPI must know about a field beyond its Python type: written into `Annotated[...]` for the CRD generator.

None of them is looked at when an object is read: the API server has checked it by then.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """The width of a number, or the notation of a string, by OpenAPI's names: `int32`, `float`, `date-time`."""

    name: str


@dataclass(frozen=True)
class ServerDefault:
    """The API server fills in the field's Python default where a manifest leaves it out."""


@dataclass(frozen=True)
class Required:
    """The schema lists the field as required although it has a default (a field without one always is)."""


@dataclass(frozen=True)
class Nullable:
    """The field may be an explicit null."""


@dataclass(frozen=True)
class IntOrString:
    """Either an integer or a string; the string matches `pattern` where one is given."""

    pattern: str = ""


@dataclass(frozen=True)
class MapList:
    """A list whose items are told apart by `key`, so that server-side apply merges them one by one."""

    key: str


@dataclass(frozen=True)
class AtomicList:
    """A list that server-side apply replaces as a whole, said aloud (a list is atomic anyway)."""


@dataclass(frozen=True)
class Rule:
    """A CEL expression that the API server evaluates on every write; `oldSelf` makes it one about changes."""

    expression: str
    message: str


@dataclass(frozen=True)
class KubernetesType:
    """The field is one of Kubernetes' own types, by its name in Kubernetes' OpenAPI document."""

    name: str
