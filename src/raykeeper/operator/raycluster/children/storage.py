"""The claim for the volume on which the GCS keeps its state in RocksDB."""

from __future__ import annotations

from typing import Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.names import gcs_storage_claim_name
from raykeeper.api.quantity import InvalidQuantity, parse_quantity
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayclusteroptions import GcsEmbeddedStorage
from raykeeper.operator.shared.children.drift import Drift, Patch
from raykeeper.operator.shared.children.metadata import (
    Ownership,
    child_metadata,
    metadata_patch,
    ownership,
)
from raykeeper.operator.shared.owner import Owner

DEFAULT_SIZE: Final = "1Gi"
DEFAULT_ACCESS_MODES: Final = ("ReadWriteOnce",)


def users_claim(cluster: RayCluster) -> str | None:
    """The claim that the user supplied; it must exist, the operator neither makes nor changes it."""
    return _storage(cluster).claim_name or None


def desired_claim(cluster: RayCluster) -> JSON:
    """The claim that the operator makes. It outlives the cluster where the deletion policy is Retain."""
    storage, child_labels = _storage(cluster), {labels.CLUSTER: cluster.metadata.name}
    metadata = child_metadata(Owner.of(cluster), gcs_storage_claim_name(cluster), child_labels)
    if storage.deletion_policy == "Retain":
        del metadata["ownerReferences"]
    spec: JSON = {
        "accessModes": list(storage.access_modes or DEFAULT_ACCESS_MODES),
        "resources": {"requests": {"storage": str(storage.size or DEFAULT_SIZE)}},
    }
    if storage.storage_class_name is not None:
        spec["storageClassName"] = storage.storage_class_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def claim_drift(owner: Owner, desired: JSON, actual: JSON) -> Drift:
    """Adopts or lets go of an existing claim, as the deletion policy says. Its spec is never touched: it holds data."""
    metadata = metadata_patch(desired, actual)
    owners = _owners(owner, desired, actual)
    if owners is not None:
        metadata["ownerReferences"] = owners or None
    return Patch({"metadata": metadata}) if metadata else None


def _owners(owner: Owner, desired: JSON, actual: JSON) -> list[JSON] | None:
    """The owners that the claim should have; None where it has them."""
    current = actual["metadata"].get("ownerReferences") or []
    whose = ownership(owner, actual)
    if desired["metadata"].get("ownerReferences"):
        return [*current, owner.reference()] if whose is Ownership.NOBODYS else None
    return [other for other in current if other["uid"] != owner.uid] if whose is Ownership.OURS else None


def claim_differences(owner: Owner, desired: JSON, actual: JSON) -> list[str]:
    """What only the user can put right about an existing claim, each as a sentence."""
    wanted, found = desired["spec"], actual["spec"]
    name = desired["metadata"]["name"]
    sentences = []
    if ownership(owner, actual) is Ownership.FOREIGN:
        sentences.append(f"the claim {name} belongs to another controller")
    if not _same_size(wanted, found):
        sentences.append(
            f"the claim {name} asks for {_size(found)}, not {_size(wanted)}; resize or replace it yourself"
        )
    for field in ("storageClassName", "accessModes"):
        if field in wanted and not _is_same(wanted[field], found.get(field)):
            sentences.append(
                f"the claim {name} has {field} {found.get(field)}, not {wanted[field]}; it cannot be changed"
            )
    return sentences


def _is_same(wanted: str | list[str], found: str | list[str] | None) -> bool:
    """Access modes are a set, in whatever order they are written."""
    is_list = isinstance(wanted, list) and isinstance(found, list)
    return sorted(wanted) == sorted(found or ()) if is_list else wanted == found


def _same_size(wanted: JSON, found: JSON) -> bool:
    try:
        return parse_quantity(_size(wanted)).nano == parse_quantity(_size(found)).nano
    except InvalidQuantity:
        return _size(wanted) == _size(found)


def _size(spec: JSON) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", ""))


def _storage(cluster: RayCluster) -> GcsEmbeddedStorage:
    options = cluster.spec.gcs_fault_tolerance_options
    return (options.storage if options else None) or GcsEmbeddedStorage()
