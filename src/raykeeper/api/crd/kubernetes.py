"""Kubernetes' own types, from its OpenAPI document to the schemas that may stand in a CRD.

The document's slice that we need is committed beside this file, so that generating CRDs takes no server;
`tools/kubernetes_types.py` makes it from a real one. Descriptions are left out: they are four fifths of a CRD's bytes,
and above 256 KiB `kubectl apply` fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from raykeeper.api import fields
from raykeeper.api.markers import KubernetesType
from raykeeper.api.meta import JSON

SLICE_FILE: Final = Path(__file__).with_name("kubernetes_types.json")

DOCUMENTS: Final = ("/openapi/v3/api/v1", "/openapi/v3/apis/networking.k8s.io/v1")
"""Where an API server serves the types that our specs refer to."""

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"

_TEXT: Final[JSON] = {"type": "string"}
_TEXTS: Final[JSON] = {"type": "object", "additionalProperties": _TEXT}
_EITHER: Final[JSON] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

REPLACED: Final[Mapping[str, JSON]] = {
    # What a user may say about an object that is made from a template; the rest of its metadata is the server's.
    OBJECT_META: {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "finalizers": {"type": "array", "items": _TEXT},
            "labels": _TEXTS,
            "name": _TEXT,
            "namespace": _TEXT,
        },
    },
    INT_OR_STRING: _EITHER,
    QUANTITY: {**_EITHER, "pattern": fields.QUANTITY_PATTERN},
}
"""Types that a CRD spells differently from OpenAPI."""

KEPT: Final = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
"""What a schema keeps as it is. Enums are not among it: KubeRay's CRDs leave judging a pod's fields to Kubernetes."""


class KubernetesTypes:
    """Schemas by the name they have in Kubernetes' OpenAPI document."""

    def __init__(self, schemas: Mapping[str, JSON]) -> None:
        self._schemas = schemas

    @classmethod
    def committed(cls) -> KubernetesTypes:
        """Those of the Kubernetes we build against."""
        return cls(msgspec.json.decode(SLICE_FILE.read_bytes())["schemas"])

    def document(self, name: str) -> JSON:
        """The type as Kubernetes' own document has it, with references to others."""
        return self._schemas[name]

    def schema(self, name: str) -> JSON:
        """The type as a structural schema, with every reference in it expanded."""
        return self._expanded_type(name, ())

    def _expanded_type(self, name: str, within: tuple[str, ...]) -> JSON:
        if name in within:
            raise ValueError(f"{name} contains itself, which a CRD cannot say")
        if name in REPLACED:
            return REPLACED[name]
        return self._expanded(self._schemas[name], (*within, name))

    def _expanded(self, schema: JSON, within: tuple[str, ...]) -> JSON:
        reference = next(references(_only_here(schema)), None)
        expanded = dict(self._expanded_type(reference, within)) if reference else {}
        expanded |= {key: schema[key] for key in KEPT if key in schema}
        for key in ("items", "additionalProperties"):
            if key in schema:
                expanded[key] = self._expanded(schema[key], within)
        if "properties" in schema:
            expanded["properties"] = {
                name: self._expanded(part, within) | _default(name, part, schema)
                for name, part in schema["properties"].items()
            }
        return expanded


def _only_here(schema: JSON) -> JSON:
    """The schema without those inside it."""
    return {key: value for key, value in schema.items() if key in ("$ref", "allOf")}


def _default(name: str, part: JSON, parent: JSON) -> JSON:
    """A property's default where Kubernetes' source states one.

    The document also gives zero values as defaults: `{}` to every object, `""` or 0 to what is required. Filling those
    in would accept a container without a name.
    """
    if name in parent.get("required", ()) or part.get("default", {}) == {}:
        return {}
    return {"default": part["default"]}


def references(schema: Any) -> Iterator[str]:
    """The names of the types that a schema refers to, at any depth."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield str(schema["$ref"]).rpartition("/")[2]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from references(part)


def wanted_types() -> set[str]:
    """The types that our fields are made of."""
    markers = (marker for hint in vars(fields).values() for marker in getattr(hint, "__metadata__", ()))
    return {marker.name for marker in markers if isinstance(marker, KubernetesType)}


def slice_of(schemas: Mapping[str, JSON], wanted: Iterable[str]) -> JSON:
    """The wanted types and all they refer to, without descriptions, in the order of their names."""
    found: dict[str, JSON] = {}
    open_names = list(wanted)
    while open_names:
        name = open_names.pop()
        if name not in found and name not in REPLACED:
            found[name] = _without_descriptions(schemas[name])
            open_names += references(schemas[name])
    return dict(sorted(found.items()))


def _without_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        # A property may be called `description` as well; its value is no string.
        kept = {key: value for key, value in schema.items() if not (key == "description" and isinstance(value, str))}
        return {key: _without_descriptions(value) for key, value in kept.items()}
    if isinstance(schema, list):
        return [_without_descriptions(part) for part in schema]
    return schema
