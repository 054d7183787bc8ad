"""The manifests that show round trips leave out no field."""

from __future__ import annotations

import pytest

from crds.field_tables import TABLES
from crds.manifests import EVERY_FIELD, fields_given

NESTED_CLUSTERS = {
    "RayJob": ".spec.rayClusterSpec",
    "RayService": ".spec.rayClusterConfig",
    "RayCronJob": ".spec.jobTemplate",
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_manifest_of_every_field_has_every_field(kind: str) -> None:
    given = {path for item in EVERY_FIELD if item["kind"] == kind for path, _ in fields_given(item["spec"], ".spec")}
    nested = NESTED_CLUSTERS.get(kind, ".nothing")
    wanted = {path for path in TABLES[kind] if path.startswith(".spec") and not path.startswith(f"{nested}.")}
    assert wanted - given == set()
