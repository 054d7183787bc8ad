"""Whether an object that has a child's name, and is not the cluster's, may stand for the child. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.children.desired import child_drift
from raykeeper.operator.raycluster.children.drift import Patch
from raykeeper.operator.raycluster.children.metadata import Ownership, owner_reference, ownership

CLAIM: Final = "PersistentVolumeClaim"
SUPPLIED_BY_USERS: Final = frozenset({"ServiceAccount", "Role", "RoleBinding", "Secret"})
"""Kinds of which KubeRay takes whatever has the name, so that a token or rights may be there before the cluster."""
ADOPTED: Final = frozenset({"ServiceAccount", "Role", "RoleBinding", "Ingress", "Route", "Service"})
"""Kinds that can be made again. A Secret cannot: it must not go with the cluster unless the cluster brought it."""


class Standing(Enum):
    """What an object of a child's name is to the cluster."""

    CHILD = auto()
    """The cluster's, or to become so."""
    SUPPLIED = auto()
    """Somebody else's, and used as it is."""
    FOREIGN = auto()
    """Somebody else's, and in the way."""


def standing(cluster: RayCluster, desired: JSON, found: JSON) -> Standing:
    """What `found` is. One that no controller owns and that carries the labels of the child was the child of a
    cluster that was deleted and left it behind (`--cascade=orphan`).
    """
    kind, owner = desired["kind"], ownership(cluster, found)
    if owner is Ownership.OURS or kind == CLAIM:
        return Standing.CHILD
    if owner is Ownership.NOBODYS and kind in ADOPTED and _carries_labels(desired, found):
        return Standing.CHILD
    return Standing.SUPPLIED if kind in SUPPLIED_BY_USERS else Standing.FOREIGN


def taking_patch(cluster: RayCluster, desired: JSON, found: JSON) -> JSON:
    """What makes a `CHILD` ours and as it should be; empty where it is. What only a replacement can mend is left to
    the next pass.
    """
    repair = child_drift(cluster, desired, found)
    patch = repair.body if isinstance(repair, Patch) else {}
    if desired["kind"] == CLAIM or ownership(cluster, found) is Ownership.OURS:
        return patch
    owners = [*(found["metadata"].get("ownerReferences") or []), owner_reference(cluster)]
    # Only this very object, and only as it was seen: the list of owners is replaced whole.
    seen = {name: found["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**patch.get("metadata", {}), **seen, "ownerReferences": owners}}


def _carries_labels(desired: JSON, found: JSON) -> bool:
    carried = found["metadata"].get("labels") or {}
    return all(carried.get(key) == value for key, value in desired["metadata"]["labels"].items())
