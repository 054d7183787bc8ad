"""Names, labels, annotations and owners of children: who an object belongs to, and what of its metadata is ours."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster

OUR_ANNOTATIONS: Final = "raykeeper.io/annotations"
"""Which annotations of a child came from the RayCluster, so that one taken away there is taken away here as well,
while those that other controllers add are left alone."""

NOT_FOR_CHILDREN: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations about the RayCluster itself: copied, they would make kubectl mistake one object for the other."""


class Ownership(Enum):
    """Whose an object is."""

    OURS = "ours"
    NOBODYS = "nobody's"
    FOREIGN = "another controller's"


def child_metadata(
    cluster: RayCluster, name: str, child_labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> JSON:
    """The metadata of a child that is deleted with its cluster."""
    metadata: JSON = {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": dict(child_labels),
        "ownerReferences": [owner_reference(cluster)],
    }
    if annotations:
        metadata["annotations"] = {**annotations, OUR_ANNOTATIONS: ",".join(sorted(annotations))}
    return metadata


def owner_reference(cluster: RayCluster) -> JSON:
    """Makes the cluster the one controller of an object."""
    return {
        "apiVersion": RAY_CLUSTERS.api_version,
        "kind": RAY_CLUSTERS.kind,
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def ownership(cluster: RayCluster, actual: JSON) -> Ownership:
    """Whose an object is that has the name of a child. Drift is repaired only in what is ours."""
    owners = actual["metadata"].get("ownerReferences") or []
    controllers = [owner["uid"] for owner in owners if owner.get("controller")]
    if not controllers:
        return Ownership.NOBODYS
    return Ownership.OURS if cluster.metadata.uid in controllers else Ownership.FOREIGN


def common_labels(cluster: RayCluster) -> dict[str, str]:
    """What every child of a cluster but a few says about itself."""
    return {
        labels.CLUSTER: cluster.metadata.name,
        labels.APP_NAME: labels.APP_NAME_KUBERAY,
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }


def annotations_for_children(cluster: RayCluster) -> dict[str, str]:
    """The cluster's annotations that its Ingress or Route gets, by which users talk to their ingress controller."""
    return {key: value for key, value in cluster.metadata.annotations.items() if key not in NOT_FOR_CHILDREN}


def metadata_patch(desired: JSON, actual: JSON) -> JSON:
    """What must change in labels and annotations; whatever others added stays."""
    wanted, found = desired["metadata"], actual["metadata"]
    patch = {
        "labels": changed_entries(wanted.get("labels"), found.get("labels")),
        "annotations": _changed_annotations(wanted.get("annotations") or {}, found.get("annotations") or {}),
    }
    return {key: entries for key, entries in patch.items() if entries}


def changed_entries(wanted: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> JSON:
    """The wanted entries that are missing or different."""
    present = found or {}
    return {key: value for key, value in (wanted or {}).items() if key not in present or present[key] != value}


def _changed_annotations(wanted: Mapping[str, str], found: Mapping[str, str]) -> JSON:
    ours = {key for key in found.get(OUR_ANNOTATIONS, "").split(",") if key} | {OUR_ANNOTATIONS}
    gone: JSON = dict.fromkeys(sorted(ours & found.keys() - wanted.keys()))
    return gone | changed_entries(wanted, found)
