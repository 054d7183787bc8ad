"""Whether a session still runs, from the heartbeats of its nodes and the clock of the store.

One look costs one listing and the records of as few nodes as it takes to find the head.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.history.store.session_state import (
    NodeLife,
    SessionState,
    State,
    is_last_word,
    node_lives,
    session_state,
)
from raykeeper.layout.keys import (
    VERSION,
    SessionId,
    closed_record_key,
    end_record_key,
    node_record_key,
    nodes_prefix,
)
from raykeeper.layout.records import ClosedRecord, EndRecord, NodeRecord, R, Record
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.heartbeats")

_MEASURE_SECONDS = 600.0  # a clock drifts by milliseconds in that time; a step by NTP is noticed soon enough


class StoreClock:
    """Our clock, corrected by how far the store's was from it when we last looked."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._offset = timedelta(0)
        self._measured_at = float("-inf")

    async def now(self) -> datetime:
        if self._clock.steady() - self._measured_at >= _MEASURE_SECONDS:
            self._measured_at = self._clock.steady()
            await self._measure()
        return self._clock.now() + self._offset

    async def _measure(self) -> None:
        """Write a small object and look at its time. Who may only read relies on the clock of this machine."""
        key = f"{VERSION}/clock/{os.urandom(8).hex()}"
        try:
            offset = await self._store.put_and_compare_clocks(key, b"?", self._clock)
            await self._store.delete(key)
        except RaykeeperError as exc:
            log.warning("cannot compare clocks with the store; trusting this machine's", cause=str(exc))
            return
        self._offset = timedelta(seconds=offset.seconds)
        if abs(offset.seconds) > 1 + offset.error_seconds:
            log.info("the store's clock differs from ours", seconds=round(offset.seconds, 3))


_RUNNING_SECONDS = 5.0  # a heartbeat comes every 30 s
_FINAL_SECONDS = 300.0  # a final session may be reopened by a head that starts again
_OPENED_AT_ONCE = 16
MOST_NODES = 20_000
"""Of one session that are looked at."""
MOST_OPENED = 1_000
"""Records that one look opens to find the head: workers are remembered, so that the next look goes on behind them."""
_REMEMBERED = 20_000


@dataclass(frozen=True)
class _Node:
    """What a listing says of one node incarnation."""

    folder: str
    beat_at: datetime
    ended_written: datetime | None
    """When its `end.json` was written, if that is its last word."""


class Heartbeats:
    """The state of any session, looked up when asked and remembered for seconds."""

    def __init__(self, store: ObjectStore, clock: Clock, store_clock: StoreClock) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._states: Bounded[SessionId, tuple[float, SessionState]] = Bounded(_REMEMBERED)
        self._workers: Bounded[str, bool] = Bounded(_REMEMBERED)
        """Folders of nodes that are no heads: what a node is never changes."""
        self._records: Bounded[str, tuple[datetime, Record | None]] = Bounded(_REMEMBERED)
        """Records of heads, by key, with the time at which that version was written; None where it cannot be read."""

    async def is_over(self, session: SessionId) -> bool:
        """Whether nobody writes to the session's logs any more."""
        return (await self.state(session)).state is not State.RUNNING

    async def state(self, session: SessionId, head_id: str = "") -> SessionState:
        """`head_id`: the node that the catalog calls the head, which is found among however many nodes."""
        known = self._states.get(session)
        if known and self._clock.steady() < known[0]:
            return known[1]
        state = await self._look(session, head_id)
        lasts = _FINAL_SECONDS if state.is_final else _RUNNING_SECONDS
        self._states.put(session, (self._clock.steady() + lasts, state))
        return state

    async def _look(self, session: SessionId, head_id: str) -> SessionState:
        nodes, closed = await asyncio.gather(self._nodes(session, head_id), self._closed(session))
        head = await self._newest_head(nodes)
        lives = [_life(node) for node in nodes if not head or node is not head[0]]
        if head:
            lives.append(await self._head_life(*head))
        beat_at = head[0].beat_at if head else None
        counts = closed is not None and (beat_at is None or is_last_word(closed[1], beat_at))
        return session_state(lives, closed[0] if closed and counts else None, await self._store_clock.now())

    async def _nodes(self, session: SessionId, head_id: str) -> list[_Node]:
        """Every node with its last heartbeat, newest first; of very many some, and the head."""
        beats: dict[str, datetime] = {}
        ends: dict[str, datetime] = {}
        async for stat in self._store.list(nodes_prefix(session)):
            folder, _, name = stat.key.rpartition("/")
            if len(beats) >= MOST_NODES:
                break
            if name == "node.json":
                beats[folder] = stat.modified
            elif name == "end.json":
                ends[folder] = stat.modified
        if len(beats) >= MOST_NODES and head_id:
            for key, times in ((node_record_key(session, head_id), beats), (end_record_key(session, head_id), ends)):
                with suppress(ObjectMissing):
                    times[key.rpartition("/")[0]] = (await self._store.stat(key)).modified
        nodes = [_Node(folder, at, _last_word(ends.get(folder), at)) for folder, at in beats.items()]
        return sorted(nodes, key=lambda node: node.beat_at, reverse=True)

    async def _closed(self, session: SessionId) -> tuple[ClosedRecord, datetime] | None:
        """What the observer wrote, and when by the store's clock."""
        key = closed_record_key(session)
        try:
            closed_at = (await self._store.stat(key)).modified
            record = await find_record(self._store, key, ClosedRecord)
        except ObjectMissing:
            return None
        except DamagedRecord as exc:
            log.warning("record of a session's end cannot be read", key=key, cause=str(exc))
            record = ClosedRecord(closed_at=closed_at, reason="", cluster_uid="")
        return (record, closed_at) if record else None

    async def _newest_head(self, nodes: list[_Node]) -> tuple[_Node, NodeRecord] | None:
        """The head that beat last: a new head incarnation starts only after the one before it stopped."""
        maybe = [node for node in nodes if node.folder not in self._workers][:MOST_OPENED]
        for start in range(0, len(maybe), _OPENED_AT_ONCE):
            some = maybe[start : start + _OPENED_AT_ONCE]
            for node, record in zip(some, await self._open(some), strict=True):
                if record and record.role == "head":
                    return node, record
                if record:
                    self._workers.put(node.folder, True)
        return None

    async def _head_life(self, node: _Node, record: NodeRecord) -> NodeLife:
        beat = msgspec.structs.replace(record, beat_at=node.beat_at)
        end = None
        if node.ended_written is not None:
            end = await self._record(f"{node.folder}/end.json", node.ended_written, EndRecord)
        [life] = node_lives([beat], [end] if end else [])
        return replace(life, has_ended=node.ended_written is not None)

    async def _open(self, nodes: Iterable[_Node]) -> list[NodeRecord | None]:
        return await asyncio.gather(
            *(self._record(f"{node.folder}/node.json", node.beat_at, NodeRecord) for node in nodes)
        )

    async def _record(self, key: str, written: datetime, kind: type[R]) -> R | None:
        """One version of a record; each is read once."""
        known = self._records.get(key)
        if known is not None and known[0] == written:
            return known[1] if isinstance(known[1], kind) else None
        record: R | None = None
        try:
            record = await find_record(self._store, key, kind)
        except DamagedRecord as exc:
            log.warning("record cannot be read", key=key, cause=str(exc))
        if isinstance(record, EndRecord):
            record = msgspec.structs.replace(record, missing_logs=())  # which may be megabytes, and nobody looks at
        self._records.put(key, (written, record))
        return record


def _life(node: _Node) -> NodeLife:
    """Of a node that is no head, or not the newest."""
    return NodeLife(node.beat_at, has_ended=node.ended_written is not None)


def _last_word(end: datetime | None, beat: datetime) -> datetime | None:
    return end if end is not None and is_last_word(end, beat) else None
