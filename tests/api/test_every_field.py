"""The manifests that show round trips leave out no field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crds.field_tables import TABLES
from crds.manifests import EVERY_FIELD

NESTED_CLUSTERS = {
    "RayJob": ".spec.rayClusterSpec",
    "RayService": ".spec.rayClusterConfig",
    "RayCronJob": ".spec.jobTemplate",
}


def paths(value: Any, path: str) -> Iterator[str]:
    """The paths of all fields in a manifest, in the notation of the tables."""
    yield path
    if isinstance(value, dict):
        for name, part in value.items():
            yield from paths(part, f"{path}.{name}")
    if isinstance(value, list):
        for part in value:
            yield from paths(part, f"{path}[]")


@pytest.mark.parametrize("kind", TABLES)
def test_a_manifest_of_every_field_has_every_field(kind: str) -> None:
    given = {path for item in EVERY_FIELD if item["kind"] == kind for path in paths(item["spec"], ".spec")}
    nested = NESTED_CLUSTERS.get(kind, ".nothing")
    wanted = {path for path in TABLES[kind] if path.startswith(".spec") and not path.startswith(f"{nested}.")}
    assert wanted - given == set()
