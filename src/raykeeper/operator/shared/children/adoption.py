"""Whether an object that has a child's name, and is not the owner's, may stand for the child. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.operator.shared.children.drift import DriftOf, Replace
from raykeeper.operator.shared.children.metadata import Ownership, ownership
from raykeeper.operator.shared.owner import Owner

CLAIM: Final = "PersistentVolumeClaim"
POD_GROUP, WORKLOAD = "PodGroup", "Workload"
SUPPLIED_BY_USERS: Final = frozenset({"ServiceAccount", "Role", "RoleBinding", "Secret"})
"""Kinds of which KubeRay takes whatever has the name, so that a token or rights may be there before the owner."""
ADOPTED: Final = frozenset({"Role", "Ingress", "Route", "Service", "Gateway", "HTTPRoute", POD_GROUP, WORKLOAD})
"""Kinds that can be made again, and changed. A Secret cannot be made again: it must not go with the owner unless the
owner brought it. ServiceAccounts and RoleBindings are never changed."""


class Standing(Enum):
    """What an object of a child's name is to the owner."""

    CHILD = auto()
    """The owner's, or to become so."""
    SUPPLIED = auto()
    """Somebody else's, and used as it is."""
    FOREIGN = auto()
    """Somebody else's, and in the way."""


def standing(owner: Owner, desired: JSON, found: JSON) -> Standing:
    """What `found` is. One that no controller owns and that carries the labels of the child was the child of an
    owner that was deleted and left it behind (`--cascade=orphan`).
    """
    kind, whose = desired["kind"], ownership(owner, found)
    if whose is Ownership.OURS or kind == CLAIM:
        return Standing.CHILD
    if whose is Ownership.NOBODYS and kind in ADOPTED and _carries_labels(desired, found):
        return Standing.CHILD
    if whose is Ownership.NOBODYS and kind == POD_GROUP and _goes_with(owner, found):
        return Standing.CHILD
    return Standing.SUPPLIED if kind in SUPPLIED_BY_USERS else Standing.FOREIGN


def taking_patch(owner: Owner, desired: JSON, found: JSON, drift_of: DriftOf) -> JSON:
    """What makes a `CHILD` ours and as it should be; empty where it is. What only a replacement can mend is left to
    the next pass.
    """
    repair = drift_of(owner, desired, found)
    repair = repair.meanwhile if isinstance(repair, Replace) else repair
    patch = repair.body if repair else {}
    if desired["kind"] == CLAIM or ownership(owner, found) is Ownership.OURS:
        return patch
    others = [one for one in found["metadata"].get("ownerReferences") or [] if one["uid"] != owner.uid]
    owners = [*others, owner.reference()]
    # Only this very object, and only as it was seen: the list of owners is replaced whole.
    seen = {name: found["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**patch.get("metadata", {}), **seen, "ownerReferences": owners}}


def _goes_with(owner: Owner, found: JSON) -> bool:
    """Whether it is deleted with the owner though the owner does not control it: KubeRay makes some PodGroups so."""
    return any(one["uid"] == owner.uid for one in found["metadata"].get("ownerReferences") or [])


def _carries_labels(desired: JSON, found: JSON) -> bool:
    carried = found["metadata"].get("labels") or {}
    return all(carried.get(key) == value for key, value in desired["metadata"]["labels"].items())
