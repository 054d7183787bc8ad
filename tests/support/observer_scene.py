"""Clusters, pods and Events as the API server sends them, for tests of the observer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from raykeeper.api.meta import JSON, Object
from raykeeper.history.observer.facts import KubeEvent
from raykeeper.layout.keys import (
    CatalogKey,
    ClusterId,
    SessionId,
    closed_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import (
    CatalogStart,
    ClosedRecord,
    NodeRecord,
    SessionRecord,
    decode_record,
    encode_record,
)
from raykeeper.storage.errors import StoreUnavailable
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import Names, ObjectStat, ObjectStore

CLUSTER = ClusterId("team-a", "train", "c-1")
CREATED = "2026-11-15T19:00:00Z"

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"


def as_object(body: JSON, kind: type[O]) -> O:
    """The body as a watch would decode it."""
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def cluster(id_: ClusterId = CLUSTER, *, owner: JSON | None = None, **parts: Any) -> Object:
    """A RayCluster; `metadata` is added to its own."""
    metadata = {
        "namespace": id_.namespace,
        "name": id_.cluster,
        "uid": id_.uid,
        "creationTimestamp": CREATED,
        "ownerReferences": [{"apiVersion": "ray.io/v1", "controller": True, **owner}] if owner else [],
        **parts.pop("metadata", {}),
    }
    return as_object({"metadata": metadata, **parts}, Object)


def owner_reference(id_: ClusterId = CLUSTER) -> JSON:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": id_.cluster,
        "uid": id_.uid,
        "controller": True,
    }


def pod(
    uid: str = "p-1", id_: ClusterId = CLUSTER, *, node_type: str = "worker", spec: JSON | None = None, **status: Any
) -> Object:
    """A pod of a cluster with that status."""
    metadata = {
        "namespace": id_.namespace,
        "name": f"{id_.cluster}-{uid}",
        "uid": uid,
        "creationTimestamp": CREATED,
        "labels": {
            "ray.io/cluster": id_.cluster,
            "ray.io/node-type": node_type,
            "ray.io/group": "headgroup" if node_type == "head" else "workers",
        },
        "ownerReferences": [owner_reference(id_)],
    }
    return as_object({"metadata": metadata, "spec": spec or {}, "status": {"phase": "Running", **status}}, Object)


def event(
    about_uid: str, uid: str = "e-1", *, kind: str = "Pod", count: int = 1, last: datetime | str = CREATED, **parts: Any
) -> KubeEvent:
    """An Event as the kubelet and most controllers write them."""
    body = {
        "metadata": {"namespace": "team-a", "name": uid, "uid": uid, "creationTimestamp": CREATED},
        "involvedObject": {"kind": kind, "name": "something", "namespace": "team-a", "uid": about_uid},
        "reason": "BackOff",
        "message": "Back-off restarting failed container",
        "type": "Warning",
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": CREATED,
        "lastTimestamp": last,
        "eventTime": None,
        "count": count,
        **parts,
    }
    return as_object(body, KubeEvent)


class StoreWithOutages(LocalStore):
    """A folder that cannot be reached while `is_away`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(parse_store_url(f"file://{folder}", {}))
        self.is_away = False
        self.refused = 0

    async def put(self, key: str, data: bytes) -> None:
        self._try(key)
        await super().put(key, data)

    async def create(self, key: str, data: bytes) -> bool:
        self._try(key)
        return await super().create(key, data)

    async def list_folders(self, prefix: str) -> Names:
        self._try(prefix)
        return await super().list_folders(prefix)

    async def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        self._try(prefix)
        async for stat in super().list(prefix, after=after):
            yield stat

    def _try(self, key: str) -> None:
        if self.is_away:
            self.refused += 1
            raise StoreUnavailable(self.describe(), key, "the test took it away")


def session_of(id_: ClusterId = CLUSTER, name: str = "session_2026-11-15_19-00-09_1_9") -> SessionId:
    return SessionId(id_.namespace, id_.cluster, name)


async def put_session_of(
    store: ObjectStore, id_: ClusterId = CLUSTER, name: str = "", head_id: str = "h1"
) -> SessionId:
    """What the collector of a head writes when it begins: the later a name, the later it began."""
    session = session_of(id_, name) if name else session_of(id_)
    started_at = datetime(2026, 11, 15, 19, int(session.session[-1]), tzinfo=UTC)
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    record = SessionRecord(
        **names, started_at=started_at, recorded_at=started_at, cluster_uid=id_.uid, head_node_id=head_id
    )
    start = CatalogStart(**names, started_at=started_at, head_node_id=head_id, cluster_uid=id_.uid)
    await store.put(session_record_key(session), encode_record(record))
    await store.put(CatalogKey(started_at.date(), session, "start").key, encode_record(start))
    await put_head_beat(store, session, head_id)
    return session


async def put_head_beat(store: ObjectStore, session: SessionId, head_id: str = "h1") -> datetime:
    """A heartbeat of the head; its time by the store's clock."""
    now, key = datetime.now(UTC), node_record_key(session, head_id)
    beat = NodeRecord(node_id=head_id, role="head", started_at=now, beat_at=now, interval_seconds=30)
    await store.put(key, encode_record(beat))
    return (await store.stat(key)).modified


async def closing_of(store: ObjectStore, session: SessionId) -> ClosedRecord | None:
    data = await store.find(closed_record_key(session))
    return decode_record(data, ClosedRecord) if data else None
