"""From a RayCluster to what is kept of it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.meta import Object
from raykeeper.history.observer.texts import parse_time, short
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ClusterFact

RAY_GROUP: Final = "ray.io"
SUSPENDED: Final = "suspended"


class _Spec(msgspec.Struct):
    suspend: bool | None = None


class _Status(msgspec.Struct, rename="camel"):
    state: str = ""
    reason: str = ""


_read_spec = msgspec.json.Decoder(_Spec).decode
_read_status = msgspec.json.Decoder(_Status).decode


def cluster_id(cluster: Object) -> ClusterId:
    meta = cluster.metadata
    return ClusterId(meta.namespace, meta.name, meta.uid)


def cluster_fact(cluster: Object, at: datetime) -> ClusterFact:
    """The RayCluster as it is at `at`. Raises `msgspec.ValidationError` for what is none."""
    meta, status = cluster.metadata, _read_status(cluster.status or b"{}")
    spec = _read_spec(cluster.spec or b"{}")
    owners = [ref for ref in meta.owner_references if ref.controller and ref.api_version.startswith(f"{RAY_GROUP}/")]
    owner = owners[0] if owners else None
    return ClusterFact(
        at=at,
        uid=meta.uid,
        name=meta.name,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        state=status.state,
        reason=short(status.reason),
        suspend=spec.suspend or status.state == SUSPENDED,
        created_at=parse_time(meta.creation_timestamp),
        deletion_requested_at=parse_time(meta.deletion_timestamp),
    )
