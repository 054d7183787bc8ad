"""From a struct of ours to an OpenAPI v3 schema, structural as Kubernetes demands it of CRDs."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from raykeeper.api.crd.descriptions import class_doc, field_docs
from raykeeper.api.crd.hints import Field, Hint, fields_of
from raykeeper.api.crd.kubernetes import KubernetesTypes
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
from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.structs import ApiStruct, RayObject

SCALARS: Final[dict[Any, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


class SchemaGenerator:
    """Makes schemas; `kubernetes` knows the types that are not ours."""

    def __init__(self, kubernetes: KubernetesTypes) -> None:
        self._kubernetes = kubernetes

    def object_schema(self, kind: type[RayObject]) -> JSON:
        """The schema of a whole object.

        Neither spec nor status is required, as in KubeRay's: who forgot the spec is told so by a condition.
        """
        text = {"type": "string"}
        properties = {"apiVersion": text, "kind": text} | self.struct_schema(kind)["properties"]
        return {"description": class_doc(kind), "type": "object", "properties": properties}

    def struct_schema(self, struct: type[ApiStruct]) -> JSON:
        """The schema of a part of an object."""
        fields = list(fields_of(struct))
        docs = field_docs(struct)
        schema: JSON = {"description": class_doc(struct), "type": "object"}
        if required := [field.json_name for field in fields if field.required]:
            schema["required"] = required
        schema["properties"] = {field.json_name: self._field_schema(field, docs.get(field.name)) for field in fields}
        return schema

    def _field_schema(self, field: Field, doc: str | None) -> JSON:
        schema = self.schema(field.hint)
        if field.server_default is not None:
            schema["default"] = field.server_default
        # What the field is for says more than what its type is.
        return {"description": doc} | {key: schema[key] for key in schema if key != "description"} if doc else schema

    def schema(self, hint: Hint) -> JSON:
        """The schema of a type with its markers."""
        schema = self._bare_schema(hint)
        for marker in hint.markers:
            schema |= _marker_schema(marker, is_list="items" in schema)
        if rules := hint.marked(Rule):
            schema["x-kubernetes-validations"] = [{"rule": rule.expression, "message": rule.message} for rule in rules]
        return schema

    def _bare_schema(self, hint: Hint) -> JSON:
        origin, arguments = get_origin(hint.bare), get_args(hint.bare)
        if names := hint.marked(KubernetesType):
            return dict(self._kubernetes.schema(names[0].name))
        if hint.marked(IntOrString):
            return {}
        if hint.bare in SCALARS:
            return {"type": SCALARS[hint.bare]}
        if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        if origin is tuple:
            return {"type": "array", "items": self.schema(Hint.of(arguments[0]))}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema(Hint.of(arguments[1]))}
        if hint.bare is ObjectMeta:
            return {"type": "object"}  # its schema is the API server's
        if isinstance(hint.bare, type) and issubclass(hint.bare, ApiStruct):
            return self.struct_schema(hint.bare)
        raise TypeError(f"{hint.bare!r} has no schema")


def _marker_schema(marker: object, *, is_list: bool) -> JSON:
    match marker:
        case Format(name):
            return {"format": name}
        case Nullable():
            return {"nullable": True}
        case IntOrString(pattern):
            either = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
            return either | ({"pattern": pattern} if pattern else {})
        case MapList(key):
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
        case AtomicList():
            return {"x-kubernetes-list-type": "atomic"}
        case msgspec.Meta():
            return _limits(marker, is_list=is_list)
        case KubernetesType() | Required() | Rule() | ServerDefault():
            return {}  # said elsewhere: as the type itself, by the parent, or with the other rules
    raise TypeError(f"{marker!r} means nothing in a schema")


def _limits(meta: msgspec.Meta, *, is_list: bool) -> JSON:
    if any(limit is not None for limit in (meta.gt, meta.le, meta.lt, meta.multiple_of)):
        raise TypeError(f"{meta!r} has limits that no schema of ours needed so far")
    limits = {
        "minimum": meta.ge,
        "minItems" if is_list else "minLength": meta.min_length,
        "maxItems" if is_list else "maxLength": meta.max_length,
        "pattern": meta.pattern,
    }
    return {key: limit for key, limit in limits.items() if limit is not None}
