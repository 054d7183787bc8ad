"""A schema as the lines of `field_tables`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from raykeeper.api.crd.kubernetes import KubernetesTypes, wanted_types
from raykeeper.api.meta import JSON

NUMBERS = ("minimum", "minLength", "maxLength", "minItems")


def _fingerprint(schema: JSON) -> str:
    return json.dumps({key: value for key, value in schema.items() if key != "description"}, sort_keys=True)


def _kubernetes_names() -> dict[str, str]:
    types = KubernetesTypes.committed()
    return {_fingerprint(types.schema(name)): name.rpartition(".")[2] for name in wanted_types()}


KUBERNETES_NAMES = _kubernetes_names()


def flatten(schema: JSON, path: str = "") -> Iterator[tuple[str, str]]:
    """Each field below `schema` with its facts; types of Kubernetes are not entered."""
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        yield from _lines(part, f"{path}.{name}", required=name in required)


def _lines(schema: JSON, path: str, *, required: bool = False) -> Iterator[tuple[str, str]]:
    kind = _type_of(schema)
    yield path, " ".join([kind, *(["required"] if required else []), *_extras(schema)])
    if kind == "object":
        yield from flatten(schema, path)
    elif kind == "list":
        yield from _lines(schema["items"], f"{path}[]")
    elif kind == "map":
        yield from _lines(schema["additionalProperties"], f"{path}{{}}")


def _type_of(schema: JSON) -> str:
    if name := KUBERNETES_NAMES.get(_fingerprint(schema)):
        return name
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if schema["type"] == "array":
        return "list"
    if "additionalProperties" in schema:
        values = _type_of(schema["additionalProperties"])
        return "map" if values == "object" else f"map-of-{values}"
    return str(schema.get("format", schema["type"]))


def _extras(schema: JSON) -> Iterator[str]:
    if "default" in schema and schema["type"] != "object":
        yield f"default={schema['default']}"
    if "enum" in schema:
        yield f"enum={'|'.join(schema['enum'])}"
    if schema.get("x-kubernetes-list-type") == "map":
        yield f"key={schema['x-kubernetes-list-map-keys'][0]}"
    if schema.get("x-kubernetes-list-type") == "atomic":
        yield "atomic"
    if schema.get("nullable"):
        yield "nullable"
    yield from (f"{key}={schema[key]}" for key in NUMBERS if key in schema)
    if "pattern" in schema and not schema.get("x-kubernetes-int-or-string"):
        yield "pattern"
    if rules := schema.get("x-kubernetes-validations"):
        yield f"rules={len(rules)}"
