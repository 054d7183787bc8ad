"""Kubernetes' own types become what KubeRay's CRDs have for them."""

from __future__ import annotations

import re

import msgspec
import pytest

from raykeeper.api.crd.kubernetes import OBJECT_META, QUANTITY, SLICE_FILE, KubernetesTypes, slice_of, wanted_types
from raykeeper.api.fields import QUANTITY_PATTERN
from raykeeper.api.meta import JSON

TYPES = KubernetesTypes.committed()
TEMPLATE = TYPES.schema("io.k8s.api.core.v1.PodTemplateSpec")
POD_SPEC = TEMPLATE["properties"]["spec"]
CONTAINERS = POD_SPEC["properties"]["containers"]
CONTAINER = CONTAINERS["items"]


def test_containers_are_merged_by_name() -> None:
    assert CONTAINERS["x-kubernetes-list-type"] == "map"
    assert CONTAINERS["x-kubernetes-list-map-keys"] == ["name"]


def test_a_container_must_have_a_name() -> None:
    assert CONTAINER["required"] == ["name"]
    assert CONTAINER["properties"]["name"] == {"type": "string"}


def test_the_protocol_of_a_port_is_tcp_because_it_is_part_of_the_key() -> None:
    ports = CONTAINER["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}


def test_the_metadata_of_a_template_takes_what_a_user_may_say() -> None:
    metadata = TEMPLATE["properties"]["metadata"]
    assert sorted(metadata["properties"]) == ["annotations", "finalizers", "labels", "name", "namespace"]


def test_amounts_of_resources_are_numbers_or_strings() -> None:
    limits = CONTAINER["properties"]["resources"]["properties"]["limits"]
    assert limits["additionalProperties"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": QUANTITY_PATTERN,
    }


@pytest.mark.parametrize("text", ["1", "500m", "1.5Gi", ".5", "+2", "-1", "1e3", "1E-2", "12Ki", "0"])
def test_the_pattern_takes_quantities(text: str) -> None:
    assert re.search(QUANTITY_PATTERN, text)


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1gi", "Gi", "1.2.3"])
def test_the_pattern_takes_nothing_else(text: str) -> None:
    assert not re.search(QUANTITY_PATTERN, text)


@pytest.mark.parametrize("key", ["enum", "description", "$ref", "x-kubernetes-patch-strategy", "x-kubernetes-unions"])
def test_a_schema_holds_nothing_that_kuberays_has_not(key: str) -> None:
    for name in wanted_types():
        assert f'"{key}":' not in msgspec.json.encode(TYPES.schema(name)).decode()


def test_every_key_of_a_map_list_is_required_or_has_a_default() -> None:
    for name in wanted_types():
        assert list(bad_keys(TYPES.schema(name), name)) == []


def bad_keys(schema: JSON, path: str) -> list[str]:
    found = []
    items = schema.get("items", {})
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        if key not in items.get("required", ()) and "default" not in items["properties"][key]:
            found.append(f"{path}: {key}")
    for name, part in {**schema.get("properties", {}), "[]": items}.items():
        found += bad_keys(part, f"{path}.{name}") if part else []
    return found


def test_zero_values_are_no_defaults_but_stated_ones_are() -> None:
    types = KubernetesTypes(
        {
            "thing": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "default": ""},
                    "part": {"allOf": [{"$ref": "#/components/schemas/part"}], "default": {}},
                    "cache": {"type": "string", "default": "ReadWrite"},
                    "optional": {"type": "string", "default": ""},
                },
            },
            "part": {"type": "object", "description": "Not for a CRD.", "x-kubernetes-map-type": "atomic"},
        }
    )
    assert types.schema("thing")["properties"] == {
        "name": {"type": "string"},
        "part": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "cache": {"type": "string", "default": "ReadWrite"},
        "optional": {"type": "string", "default": ""},
    }


def test_a_type_that_contains_itself_is_refused_by_name() -> None:
    types = KubernetesTypes({"tree": {"properties": {"left": {"$ref": "#/components/schemas/tree"}}}})
    with pytest.raises(ValueError, match="tree contains itself"):
        types.schema("tree")


def test_a_slice_holds_what_is_referred_to_and_no_prose() -> None:
    schemas: dict[str, JSON] = {
        "unused": {"type": "object"},
        "b": {"type": "string", "description": "Prose."},
        "a": {
            "description": "Prose.",
            "properties": {
                "description": {"$ref": "#/components/schemas/b"},
                "size": {"$ref": f"#/components/schemas/{QUANTITY}"},
                "metadata": {"$ref": f"#/components/schemas/{OBJECT_META}"},
            },
        },
    }
    found = slice_of(schemas, ["a"])
    assert list(found) == ["a", "b"]
    assert list(found["a"]["properties"]) == ["description", "size", "metadata"]
    assert found["b"] == {"type": "string"}


def test_the_committed_slice_says_which_kubernetes_it_is_of() -> None:
    assert msgspec.json.decode(SLICE_FILE.read_bytes())["kubernetes"].startswith("v1.")
