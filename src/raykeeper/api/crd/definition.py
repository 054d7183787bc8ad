"""CustomResourceDefinitions: what a cluster must be told before it knows the kinds of `ray.io`."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from raykeeper.api.crd.kinds import Column, Kind
from raykeeper.api.crd.kubernetes import KubernetesTypes
from raykeeper.api.crd.schema import SchemaGenerator
from raykeeper.api.meta import JSON

ALPHA: Final = "v1alpha1"
HASH_ANNOTATION: Final = "raykeeper.io/crd-hash"
"""Of the spec. By it the chart sees at its installation that a cluster has other CRDs already, such as KubeRay's."""


def definition_of(kind: Kind, kubernetes: KubernetesTypes) -> JSON:
    """The CustomResourceDefinition of a kind."""
    resource = kind.resource
    versions = [_version(kind, SchemaGenerator(kubernetes).object_schema(kind.struct))]
    if kind.alpha_spec is not None:
        versions.append(_alpha_version(kind, kind.alpha_spec))
    spec = {
        "group": resource.group,
        "names": {
            "categories": ["all"],
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "plural": resource.plural,
            "singular": resource.kind.lower(),
        },
        "scope": "Namespaced",
        "versions": versions,
    }
    digest = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name, "annotations": {HASH_ANNOTATION: f"h{digest}"}},
        "spec": spec,
    }


def _version(kind: Kind, schema: JSON) -> JSON:
    return {"name": kind.resource.version, "served": True, "storage": True} | _face(kind, schema)


def _alpha_version(kind: Kind, spec: JSON) -> JSON:
    text = {"type": "string"}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "spec": spec, "status": anything}
    warning = (
        f"{kind.resource.group}/{ALPHA} {kind.resource.kind} is deprecated: it gets no new fields"
        f" and becomes unavailable in KubeRay 1.9; use {kind.resource.api_version}"
    )
    version = {"name": ALPHA, "served": True, "storage": False, "deprecated": True, "deprecationWarning": warning}
    return version | _face(kind, {"type": "object", "properties": properties})


def _face(kind: Kind, schema: JSON) -> JSON:
    """What of a version users see."""
    return {
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": schema},
    }


def _column(column: Column) -> JSON:
    written: JSON = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return written | ({"priority": column.priority} if column.priority else {})
