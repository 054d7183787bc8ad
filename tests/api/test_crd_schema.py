"""What each type and marker becomes in a schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from raykeeper.api.crd.hints import Hint
from raykeeper.api.crd.kubernetes import KubernetesTypes
from raykeeper.api.crd.schema import SchemaGenerator
from raykeeper.api.fields import Int32, Quantity, Time
from raykeeper.api.markers import (
    AtomicList,
    Format,
    IntOrString,
    KubernetesType,
    MapList,
    Nullable,
    Required,
    Rule,
    ServerDefault,
)
from raykeeper.api.meta import JSON
from raykeeper.api.structs import ApiStruct, RayObject

GENERATOR = SchemaGenerator(KubernetesTypes({"pod": {"type": "object", "required": ["spec"]}}))


class Inner(ApiStruct, frozen=True):
    """A part of a thing."""

    host_ip: str = ""
    """Where it is."""


class Outer(ApiStruct, frozen=True):
    """A thing
    in two lines."""

    inner: Inner
    """The part."""
    plain: Inner = Inner()
    count: Annotated[Int32, ServerDefault(), Required()] = 3
    """How many."""
    flags: dict[str, str] = msgspec.field(default_factory=dict)


class Whole(RayObject, frozen=True):
    """A whole object."""

    spec: Inner
    """What should be."""
    status: Inner = Inner()
    """What is."""


def schema(hint: Any) -> JSON:
    return GENERATOR.schema(Hint.of(hint))


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (str | None, {"type": "string"}),
        (Annotated[int, Format("int32")], {"type": "integer", "format": "int32"}),
        (Int32 | None, {"type": "integer", "format": "int32"}),
        (Annotated[float, Format("float")], {"type": "number", "format": "float"}),
        (Time, {"type": "string", "format": "date-time"}),
        (Literal["b", "a"] | None, {"type": "string", "enum": ["b", "a"]}),
        (dict[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
        (dict[str, Time], {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (
            Annotated[tuple[str, ...], AtomicList()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        (
            Annotated[tuple[str, ...], MapList("name")],
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
        (Annotated[Time | None, Nullable()], {"type": "string", "format": "date-time", "nullable": True}),
        (Annotated[int, msgspec.Meta(ge=0)], {"type": "integer", "minimum": 0}),
        (
            Annotated[str, msgspec.Meta(min_length=1, max_length=9, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        ),
        (
            Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None,
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        (
            Annotated[int | str, IntOrString()],
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
        ),
        (
            Annotated[str, Rule("self == oldSelf", "it stays")],
            {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "it stays"}]},
        ),
        (Annotated[JSON, KubernetesType("pod")], {"type": "object", "required": ["spec"]}),
    ],
)
def test_a_type_becomes_a_schema(hint: Any, expected: JSON) -> None:
    assert schema(hint) == expected


def test_a_quantity_is_a_number_or_a_string_of_kubernetes_grammar() -> None:
    assert schema(Quantity | None)["x-kubernetes-int-or-string"] is True
    assert schema(Quantity | None)["pattern"].endswith("?$")


def test_a_struct_becomes_an_object_with_its_prose() -> None:
    assert GENERATOR.struct_schema(Outer) == {
        "description": "A thing in two lines.",
        "type": "object",
        "required": ["inner", "count"],
        "properties": {
            "inner": {
                "description": "The part.",
                "type": "object",
                "properties": {"hostIP": {"description": "Where it is.", "type": "string"}},
            },
            "plain": {
                "description": "A part of a thing.",
                "type": "object",
                "properties": {"hostIP": {"description": "Where it is.", "type": "string"}},
            },
            "count": {"description": "How many.", "type": "integer", "format": "int32", "default": 3},
            "flags": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }


def test_a_whole_object_requires_neither_spec_nor_status() -> None:
    whole = GENERATOR.object_schema(Whole)
    assert list(whole["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert whole["properties"]["metadata"] == {"type": "object"}
    assert "required" not in whole


def test_a_type_without_a_schema_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"bytes.* has no schema"):
        schema(bytes)


@pytest.mark.parametrize("marker", ["a word", msgspec.Meta(gt=3), msgspec.Meta(ge=3, le=4)])
def test_a_marker_that_would_be_lost_is_refused(marker: object) -> None:
    with pytest.raises(TypeError, match=r"means nothing|no schema of ours"):
        schema(Annotated[int, marker])
