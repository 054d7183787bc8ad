"""The small records of a session, read from the store: who took part, how it ended, what the head's dashboard said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from raykeeper.history.ingest.messages import Gap
from raykeeper.history.store.records import DamagedRecord, find_answer, find_record, find_session_record
from raykeeper.history.store.session_state import SessionState, is_last_word, node_lives, session_state
from raykeeper.layout.keys import (
    PolledKey,
    SessionId,
    closed_record_key,
    nodes_prefix,
    parse_polled_key,
)
from raykeeper.layout.polled import DamagedAnswer
from raykeeper.layout.records import (
    ClosedRecord,
    EndRecord,
    NodeRecord,
    PolledAnswer,
    R,
    Record,
    SessionRecord,
    check_times,
)
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStat, ObjectStore

READS_AT_ONCE = 16
MOST_RECORDS, RECORDS_LIMIT_BYTES = 40_000, 64 << 20
"""Of the nodes of one session, heartbeats and ends."""
MOST_POLLED_PATHS = 5_000
"""Of one session; each job that used Ray Data has one."""
_ANSWERS_AT_ONCE = 8
ANSWERS_LIMIT_BYTES = 128 << 20
"""Of the newest answers of one session, which are held in memory: four times the largest."""


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
        self._left_out: dict[str, Gap] = {}
        self._slots = asyncio.Semaphore(READS_AT_ONCE)

    async def read(self) -> SessionRecords:
        listed = await self._listed_records()
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
            gaps=(*self._left_out.values(), *(found for _, found in self._read.values() if isinstance(found, Gap))),
        )

    async def _listed_records(self) -> list[ObjectStat]:
        """Records of nodes, up to the bounds; what is beyond them is one gap."""
        listed, size = list[ObjectStat](), 0
        self._left_out.pop(nodes_prefix(self._session), None)
        async for item in self._store.list(nodes_prefix(self._session)):
            size += item.size
            if len(listed) >= MOST_RECORDS or size > RECORDS_LIMIT_BYTES:
                key = nodes_prefix(self._session)
                self._left_out[key] = Gap(key, 0, f"more than {MOST_RECORDS} records of nodes, or too large ones")
                break
            listed.append(item)
        return listed

    async def answers(self, keys: Iterable[str]) -> dict[str, PolledAnswer]:
        """The polled answers of these keys by path; each object is read once."""
        wanted = set(keys)
        self._answers = {key: answer for key, answer in self._answers.items() if key in wanted}
        missing = sorted(wanted - self._answers.keys())
        held = answers_bytes(self._answers.values())
        for start in range(0, len(missing), _ANSWERS_AT_ONCE):
            some = missing[start : start + _ANSWERS_AT_ONCE]
            for key, answer in zip(some, await asyncio.gather(*map(self._answer, some)), strict=True):
                held += answers_bytes([answer] if answer else [])
                if held > ANSWERS_LIMIT_BYTES:
                    self._damaged[key] = Gap(key, 0, f"more than {ANSWERS_LIMIT_BYTES} bytes of answers")
                elif answer is not None:
                    self._answers[key] = answer
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
                known = await self._found(item.key, kind)
            if known is None:
                return None
            self._read[item.key] = (item.modified, known)
        return known if isinstance(known, kind) else None

    async def _single_records(self) -> tuple[SessionRecord | None, ClosedRecord | None]:
        record, closed = await asyncio.gather(
            self._session_record(), self._found(closed_record_key(self._session), ClosedRecord)
        )
        return record, closed if isinstance(closed, ClosedRecord) else None

    async def _session_record(self) -> SessionRecord | None:
        try:
            return await find_session_record(self._store, self._session)
        except DamagedRecord:
            return None

    async def _found(self, key: str, kind: type[R]) -> R | Gap | None:
        try:
            return await find_record(self._store, key, kind)
        except DamagedRecord as exc:
            return Gap(key, 0, f"damaged: {exc}")

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
        self._left_out.pop(prefix := PolledKey.prefix(self._session), None)
        if len(folders) > MOST_POLLED_PATHS:
            self._left_out[prefix] = Gap(prefix, 0, f"more than {MOST_POLLED_PATHS} polled paths")
            folders = folders[:MOST_POLLED_PATHS]
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
        try:
            async with self._slots:
                return await find_answer(self._store, key)
        except DamagedAnswer as exc:
            self._damaged[key] = Gap(key, 0, f"damaged: {exc}")
            return None


def answers_bytes(answers: Iterable[PolledAnswer]) -> int:
    """What they take in memory."""
    return sum(len(memoryview(answer.body)) for answer in answers)


def _last_words(
    ends: Iterable[tuple[EndRecord, datetime]], nodes: Iterable[tuple[NodeRecord, datetime]]
) -> tuple[EndRecord, ...]:
    beats = {node.node_id: modified for node, modified in nodes}
    return tuple(end for end, written in ends if is_last_word(written, beats.get(end.node_id, written)))
