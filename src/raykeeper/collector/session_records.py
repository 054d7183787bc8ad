"""The head's records of a session: `session.json` and its catalog entry, from the start on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.identity import Identity
from raykeeper.collector.poll.facts import HeadFacts
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.collector.start_time import observe_first_file, session_started_at
from raykeeper.layout.keys import CatalogKey, CatalogPart, session_record_key
from raykeeper.layout.records import (
    CatalogEnd,
    CatalogStart,
    EndRecord,
    SessionRecord,
    decode_record,
    encode_record,
)
from raykeeper.logs import Log

FACTS_SECONDS = 10.0
"""How long a session waits for Ray's version. A head that dies young must have been recorded, so never longer."""
REPEAT_SECONDS = 24 * 3600.0  # age rules of buckets count in days; a long run must not lose its first objects

log = Log("raykeeper.collector.records")


class RecordBucket(Protocol):
    """The part of the bucket that is needed for records. Every call waits out outages."""

    async def put(self, key: str, data: bytes) -> None:
        """Write an object, over the one that is there."""

    async def create(self, key: str, data: bytes) -> bool:
        """Whether this call wrote the object; False when there was one."""

    async def find(self, key: str) -> bytes | None:
        """The object, or None when there is none."""


@dataclass
class _Opened:
    """A session whose start was recorded."""

    record: SessionRecord
    data: bytes
    start: CatalogStart
    written_at: float


class SessionRecords:
    """Records the start of sessions, and keeps these records fresh.

    The first head incarnation's `session.json` stays as it is: with GCS fault tolerance a later head finds it and goes
    on in the same session. It puts its own node id into the catalog's `.start.json`, by which an `.end.json` that an
    earlier head left is known to be the session's end no longer. Whether a session runs, its nodes' records say.
    """

    def __init__(
        self, identity: Identity, bucket: RecordBucket, clock: Clock, facts: Callable[[str], HeadFacts]
    ) -> None:
        self._identity = identity
        self._bucket = bucket
        self._clock = clock
        self._facts = facts
        self._first_seen: dict[str, float] = {}
        self._opened: dict[str, _Opened] = {}

    async def keep(self, session: SessionOnDisk, *, is_current: bool) -> None:
        """Record the session's start once enough is known, then keep it fresh. Cheap when there is nothing to do."""
        opened = self._opened.get(session.name)
        if opened is None:
            if not is_current or self._is_ready(session):
                await self._open(session, is_current=is_current)
        elif is_current:
            await self._freshen(session, opened)

    async def close(self, session: str, end: EndRecord) -> None:
        """Record in the catalog that the head ended gracefully."""
        if (opened := self._opened.get(session)) is not None:
            entry = CatalogEnd(
                ended_at=end.ended_at, reason=end.reason, is_complete=end.is_complete, head_node_id=end.node_id
            )
            await self._bucket.put(self._catalog_key(opened.record, "end"), encode_record(entry))

    def _is_ready(self, session: SessionOnDisk) -> bool:
        waited = self._clock.steady() - self._first_seen.setdefault(session.name, self._clock.steady())
        is_known = bool(session.incarnations and self._facts(session.name).ray_version)
        return is_known or waited >= FACTS_SECONDS

    async def _open(self, session: SessionOnDisk, *, is_current: bool) -> None:
        key = session_record_key(self._identity.session(session.name))
        record = await asyncio.to_thread(self._session_record, session)
        data = encode_record(record)
        is_new = await self._bucket.create(key, data)
        if not is_new:
            data = await self._bucket.find(key) or data
            record = _decoded(data) or record
        opened = _Opened(record, data, self._start_of(record, session), self._clock.steady())
        if is_new or is_current:  # whoever recorded an earlier session knew more about it than we do now
            await self._put_start(opened)
        self._opened[session.name] = opened
        log.info("session recorded", session=session.name, started_at=record.started_at.isoformat())

    async def _freshen(self, session: SessionOnDisk, opened: _Opened) -> None:
        """Write the start again if more is known by now, and both objects once a day."""
        is_old = self._clock.steady() - opened.written_at >= REPEAT_SECONDS
        start = self._start_of(opened.record, session)
        if is_old:
            await self._bucket.put(session_record_key(self._identity.session(session.name)), opened.data)
        if is_old or start != opened.start:
            opened.start = start
            await self._put_start(opened)

    async def _put_start(self, opened: _Opened) -> None:
        await self._bucket.put(self._catalog_key(opened.record, "start"), encode_record(opened.start))
        opened.written_at = self._clock.steady()

    def _catalog_key(self, record: SessionRecord, part: CatalogPart) -> str:
        return CatalogKey(record.started_at.date(), self._identity.session(record.session), part).key

    def _session_record(self, session: SessionOnDisk) -> SessionRecord:
        facts, identity, now = self._facts(session.name), self._identity, self._clock.now()
        return SessionRecord(
            namespace=identity.namespace,
            cluster=identity.cluster,
            session=session.name,
            started_at=self._started_at(session, facts, now),
            recorded_at=now,
            head_node_id=_newest_node(session),
            cluster_uid=identity.cluster_uid,
            owner_kind=identity.owner_kind,
            owner_name=identity.owner_name,
            ray_version=facts.ray_version,
            ray_commit=facts.ray_commit,
            python_version=facts.python_version,
            collector_version=identity.collector_version,
        )

    def _started_at(self, session: SessionOnDisk, facts: HeadFacts, now: datetime) -> datetime:
        return session_started_at(session.name, observe_first_file(session.path), facts.utc_offset) or now

    def _start_of(self, record: SessionRecord, session: SessionOnDisk) -> CatalogStart:
        return CatalogStart(
            namespace=record.namespace,
            cluster=record.cluster,
            session=record.session,
            started_at=record.started_at,
            head_node_id=_newest_node(session),
            cluster_uid=record.cluster_uid,
            owner_kind=record.owner_kind,
            owner_name=record.owner_name,
            ray_version=record.ray_version or self._facts(session.name).ray_version,
        )


def _newest_node(session: SessionOnDisk) -> str:
    return session.incarnations[-1].node_id if session.incarnations else ""


def _decoded(data: bytes) -> SessionRecord | None:
    try:
        return decode_record(data, SessionRecord)
    except msgspec.DecodeError as exc:
        log.warning("session record not readable; ours is used", cause=str(exc))
        return None
