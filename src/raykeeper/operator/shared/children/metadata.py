"""Names, labels, annotations and owners of children: who an object belongs to, and what of its metadata is ours."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from raykeeper.api.meta import JSON
from raykeeper.operator.shared.owner import Owner

OUR_ANNOTATIONS: Final = "raykeeper.io/annotations"
"""Which annotations of a child came from its owner, so that one taken away there is taken away here as well,
while those that other controllers add are left alone."""

NOT_FOR_CHILDREN: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations about the owner itself: copied, they would make kubectl mistake one object for the other."""


class Ownership(Enum):
    """Whose an object is."""

    OURS = "ours"
    NOBODYS = "nobody's"
    FOREIGN = "another controller's"


def child_metadata(
    owner: Owner, name: str, child_labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> JSON:
    """The metadata of a child that is deleted with its owner."""
    metadata: JSON = {
        "name": name,
        "namespace": owner.key.namespace,
        "labels": dict(child_labels),
        "ownerReferences": [owner.reference()],
    }
    if annotations:
        metadata["annotations"] = {**annotations, OUR_ANNOTATIONS: ",".join(sorted(annotations))}
    return metadata


def ownership(owner: Owner, actual: JSON) -> Ownership:
    """Whose an object is that has the name of a child. Drift is repaired only in what is ours."""
    owners = actual["metadata"].get("ownerReferences") or []
    controllers = [one["uid"] for one in owners if one.get("controller")]
    if not controllers:
        return Ownership.NOBODYS
    return Ownership.OURS if owner.uid in controllers else Ownership.FOREIGN


def annotations_for_children(owner: Owner) -> dict[str, str]:
    """The owner's annotations that its Ingress or Route gets, by which users talk to their ingress controller."""
    return {key: value for key, value in owner.annotations.items() if key not in NOT_FOR_CHILDREN}


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
