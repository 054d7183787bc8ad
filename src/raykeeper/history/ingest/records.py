"""The small records of a session, read from the store: who took part, how it ended, what the head's dashboard said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from raykeeper.history.ingest.messages import Gap
from raykeeper.history.store.session_state import SessionState, is_last_word, node_lives, session_state
from raykeeper.layout.keys import (
    PolledKey,
    SessionId,
    closed_record_key,
    nodes_prefix,
    parse_polled_key,
    session_record_key,
)
from raykeeper.layout.polled import DamagedAnswer, decode_polled
from raykeeper.layout.records import (
    ClosedRecord,
    EndRecord,
    NodeRecord,
    PolledAnswer,
    Record,
    SessionRecord,
    check_times,
    decode_record,
)
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStat, ObjectStore

READS_AT_ONCE = 16
R = TypeVar("R", bound=Record)


class SessionRecords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All small records of one session, as they were found."""

    record: SessionRecord | None = None
    closed: ClosedRecord | None = None
    nodes: tuple[NodeRecord, ...] = ()
    """With the store's time of each heartbeat: a node's own clock may be off by hours."""
    ends: tuple[EndRecord, ...] = ()
    """Those that no later heartbeat took back."""
    polled: tuple[str, ...] = ()
    """Key of the newest answer of each path."""
    gaps: tuple[Gap, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.record or self.closed or self.nodes or self.ends or self.polled)

    def check(self, session: SessionId) -> None:
        """Raises ValueError for facts that were read elsewhere than in this session, or cannot be."""
        for record in (self.record, self.closed, *self.nodes, *self.ends):
            if record is not None:
                check_times(record)
        for key in self.polled:
            polled = parse_polled_key(key)
            if polled is None or polled.session != session:
                raise ValueError(f"{key!r} is no answer of this session")

    def state(self, now: datetime, sealed_at: Mapping[str, datetime] | None = None) -> SessionState:
        """Whether and how the cluster ended, with the time of each node's last events."""
        return session_state(node_lives(self.nodes, self.ends), self.closed, now, sealed_at)


class RecordReader:
    """Reads one session's records again and again, each version of an object once."""

    def __init__(self, store: ObjectStore, session: SessionId) -> None:
        self._store = store
        self._session = session
        self._read: dict[str, tuple[datetime, Record | Gap]] = {}
        self._newest_polled: dict[str, str] = {}
        self._answers: dict[str, PolledAnswer] = {}
        self._damaged: dict[str, Gap] = {}
        self._slots = asyncio.Semaphore(READS_AT_ONCE)

    async def read(self) -> SessionRecords:
        listed = [item async for item in self._store.list(nodes_prefix(self._session))]
        nodes, ends, single, polled = await asyncio.gather(
            self._records((item for item in listed if item.key.endswith("/node.json")), NodeRecord),
            self._records((item for item in listed if item.key.endswith("/end.json")), EndRecord),
            self._single_records(),
            self._list_polled(),
        )
        return SessionRecords(
            record=single[0],
            closed=single[1] if single[1] and await self._is_still_closed(nodes) else None,
            nodes=tuple(msgspec.structs.replace(node, beat_at=modified) for node, modified in nodes),
            ends=_last_words(ends, nodes),
            polled=polled,
            gaps=tuple(found for _, found in self._read.values() if isinstance(found, Gap)),
        )

    async def answers(self, keys: Iterable[str]) -> dict[str, PolledAnswer]:
        """The polled answers of these keys by path; each object is read once."""
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._answers]
        for key, answer in zip(missing, await asyncio.gather(*map(self._answer, missing)), strict=True):
            if answer is not None:
                self._answers[key] = answer
        self._answers = {key: answer for key, answer in self._answers.items() if key in set(wanted)}
        return {answer.path: answer for answer in self._answers.values()}

    @property
    def damaged_answers(self) -> tuple[Gap, ...]:
        """What `answers` could not read."""
        return tuple(self._damaged.values())

    async def _records(self, items: Iterable[ObjectStat], kind: type[R]) -> list[tuple[R, datetime]]:
        wanted = list(items)
        found = await asyncio.gather(*(self._record(item, kind) for item in wanted))
        return [(record, item.modified) for record, item in zip(found, wanted, strict=True) if record is not None]

    async def _record(self, item: ObjectStat, kind: type[R]) -> R | None:
        modified, known = self._read.get(item.key, (None, None))
        if modified != item.modified:
            async with self._slots:
                data = await self._store.find(item.key)
            if data is None:
                return None
            known = _decoded(item.key, data, kind)
            self._read[item.key] = (item.modified, known)
        return known if isinstance(known, kind) else None

    async def _single_records(self) -> tuple[SessionRecord | None, ClosedRecord | None]:
        record, closed = await asyncio.gather(
            self._store.find(session_record_key(self._session)), self._store.find(closed_record_key(self._session))
        )
        return (
            _found(session_record_key(self._session), record, SessionRecord),
            _found(closed_record_key(self._session), closed, ClosedRecord),
        )

    async def _is_still_closed(self, nodes: Iterable[tuple[NodeRecord, datetime]]) -> bool:
        """Whether no head went on with the session after it was closed, as one does under GCS fault tolerance."""
        beats = [modified for node, modified in nodes if node.role == "head"]
        try:
            written = (await self._store.stat(closed_record_key(self._session))).modified
            return not beats or is_last_word(written, max(beats))
        except ObjectMissing:
            return False

    async def _list_polled(self) -> tuple[str, ...]:
        folders = await self._store.list_folders(PolledKey.prefix(self._session))
        newest = await asyncio.gather(*map(self._newest_of, folders))
        return tuple(sorted(key for key in newest if key))

    async def _newest_of(self, folder: str) -> str | None:
        prefix = f"{PolledKey.prefix(self._session)}{folder}/"
        async with self._slots:
            async for item in self._store.list(prefix, after=self._newest_polled.get(folder, "")):
                if parse_polled_key(item.key):
                    self._newest_polled[folder] = item.key
        return self._newest_polled.get(folder)

    async def _answer(self, key: str) -> PolledAnswer | None:
        async with self._slots:
            data = await self._store.find(key)
        try:
            return None if data is None else decode_polled(data)
        except DamagedAnswer as exc:
            self._damaged[key] = Gap(key, 0, f"damaged: {exc}")
            return None


def _last_words(
    ends: Iterable[tuple[EndRecord, datetime]], nodes: Iterable[tuple[NodeRecord, datetime]]
) -> tuple[EndRecord, ...]:
    beats = {node.node_id: modified for node, modified in nodes}
    return tuple(end for end, written in ends if is_last_word(written, beats.get(end.node_id, written)))


def _found(key: str, data: bytes | None, kind: type[R]) -> R | None:
    decoded = None if data is None else _decoded(key, data, kind)
    return decoded if isinstance(decoded, kind) else None


def _decoded(key: str, data: bytes, kind: type[R]) -> R | Gap:
    try:
        return decode_record(data, kind)
    except msgspec.DecodeError as exc:
        return Gap(key, 0, f"damaged: {exc}")
