"""Writes `closed.json`: that a cluster's session is over though its collectors did not say so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.records import DamagedRecord, find_record, find_session_record
from raykeeper.layout.keys import (
    CatalogKey,
    ClusterId,
    SessionId,
    closed_record_key,
    cluster_prefix,
    node_record_key,
)
from raykeeper.layout.names import from_segment
from raykeeper.layout.records import CatalogStart, ClosedRecord, R, SessionRecord, encode_record
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_MOST_SESSIONS = 200
"""Of one name of a cluster that are looked at. Names of Ray's sessions begin with the time, so these are the newest."""
_READ_AT_ONCE = 16


log = Log("raykeeper.history.observer")


@dataclass(frozen=True)
class Ending:
    """How and when a cluster's session ended."""

    reason: str
    at: datetime | None
    """By the store's clock; None where it happened unseen, so that only the last heartbeat tells."""


class SessionEnds:
    """The ends of sessions of clusters in one store."""

    def __init__(self, store: ObjectStore, store_clock: StoreClock) -> None:
        self._store = store
        self._store_clock = store_clock
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def now(self) -> datetime:
        """The time by the store's clock."""
        return await self._store_clock.now()

    async def close(self, cluster: ClusterId, ending: Ending) -> bool:
        """Close the cluster's newest session; whether this call did.

        Older sessions of the same cluster ended when a newer head began, well or not: their own records tell that.
        """
        record = await self._newest_session(cluster)
        if record is None:
            return False
        session = SessionId(record.namespace, record.cluster, record.session)
        beat_at = await self._last_beat(session, record)
        at = ending.at or beat_at or await self.now()
        data = encode_record(ClosedRecord(closed_at=at, reason=ending.reason, cluster_uid=cluster.uid))
        key = closed_record_key(session)
        if not await self._store.create(key, data):
            if not await self._was_reopened(key, beat_at):
                return False
            await self._store.put(key, data)
        log.info("session closed", session=str(session), reason=ending.reason)
        return True

    async def _newest_session(self, cluster: ClusterId) -> SessionRecord | None:
        folders = await self._store.list_folders(cluster_prefix(cluster.namespace, cluster.cluster))
        names = [name for folder in folders[-_MOST_SESSIONS:] if (name := _name(folder))]
        ids = [SessionId(cluster.namespace, cluster.cluster, name) for name in names]
        records = await asyncio.gather(*map(self._record, ids))
        ours = [record for record in records if record is not None and record.cluster_uid == cluster.uid]
        return max(ours, key=lambda record: record.started_at, default=None)

    async def _record(self, session: SessionId) -> SessionRecord | None:
        try:
            async with self._reads:
                return await find_session_record(self._store, session)
        except DamagedRecord as exc:
            log.warning("record cannot be read", session=str(session), cause=str(exc))
            return None

    async def _find(self, key: str, kind: type[R]) -> R | None:
        try:
            return await find_record(self._store, key, kind)
        except DamagedRecord as exc:
            log.warning("record cannot be read", key=key, cause=str(exc))
            return None

    async def _last_beat(self, session: SessionId, record: SessionRecord) -> datetime | None:
        """Of the newest head, which the catalog names."""
        day = record.started_at.astimezone(UTC).date()
        entry = await self._find(CatalogKey(day, session, "start").key, CatalogStart)
        head = (entry and entry.head_node_id) or record.head_node_id
        try:
            return (await self._store.stat(node_record_key(session, head))).modified if head else None
        except ObjectMissing:
            return None

    async def _was_reopened(self, key: str, beat_at: datetime | None) -> bool:
        """Whether a head went on with the session after it was closed, as under GCS fault tolerance."""
        try:
            return beat_at is not None and beat_at > (await self._store.stat(key)).modified
        except ObjectMissing:
            return True


def _name(folder: str) -> str | None:
    try:
        return from_segment(folder)
    except ValueError:
        return None
