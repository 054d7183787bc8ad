"""Looks at the heartbeats of a session: one listing, and the records of as few nodes as it takes to find the head."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from raykeeper.clock import Clock
from raykeeper.history.state import Beat, Closing, State, Verdict, judge
from raykeeper.history.storeclock import StoreClock
from raykeeper.layout.keys import SessionId, closed_record_key, nodes_prefix
from raykeeper.layout.records import HEAD_LOST, ClosedRecord, NodeRecord, decode_record
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_RUNNING_SECONDS = 5.0  # a heartbeat comes every 30 s
_FINAL_SECONDS = 300.0  # a final session may be reopened by a head that starts again
_OPENED_AT_ONCE = 16
_REMEMBERED = 20_000

K = TypeVar("K")
V = TypeVar("V")

log = Log("raykeeper.history.heartbeats")


@dataclass(frozen=True)
class _Node:
    key: str
    beat_at: datetime
    has_ended: bool


class Heartbeats:
    """The state of any session, looked up when asked and remembered for seconds."""

    def __init__(self, store: ObjectStore, clock: Clock, store_clock: StoreClock) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._verdicts: OrderedDict[SessionId, tuple[float, Verdict]] = OrderedDict()
        self._records: OrderedDict[str, NodeRecord] = OrderedDict()
        """By key; role and interval of a node incarnation never change."""

    async def is_over(self, session: SessionId) -> bool:
        """Whether nobody writes to the session's logs any more."""
        return (await self.verdict(session)).state is not State.RUNNING

    async def verdict(self, session: SessionId) -> Verdict:
        known = self._verdicts.get(session)
        if known and self._clock.steady() < known[0]:
            return known[1]
        verdict = await self._judge(session)
        lasts = _FINAL_SECONDS if verdict.is_final else _RUNNING_SECONDS
        _remember(self._verdicts, session, (self._clock.steady() + lasts, verdict))
        return verdict

    async def _judge(self, session: SessionId) -> Verdict:
        nodes, closing = await asyncio.gather(self._look(session), self._closing(session))
        head = await self._newest_head(nodes)
        now = await self._store_clock.now()
        others = [Beat(node.beat_at, node.has_ended) for node in nodes if not head or node is not head[0]]
        return judge(head[1] if head else None, others, closing=closing, now=now)

    async def _look(self, session: SessionId) -> list[_Node]:
        """Every node with its last heartbeat, newest first."""
        beats: dict[str, datetime] = {}
        ends: dict[str, datetime] = {}
        async for stat in self._store.list(nodes_prefix(session)):
            folder, _, name = stat.key.rpartition("/")
            if name == "node.json":
                beats[folder] = stat.modified
            elif name == "end.json":
                ends[folder] = stat.modified
        nodes = [_Node(f"{folder}/node.json", at, _is_last(ends.get(folder), at)) for folder, at in beats.items()]
        return sorted(nodes, key=lambda node: node.beat_at, reverse=True)

    async def _closing(self, session: SessionId) -> Closing | None:
        """When the observer closed the session, by the store's clock, and why."""
        key = closed_record_key(session)
        try:
            closed_at = (await self._store.stat(key)).modified
            return Closing(closed_at, decode_record(await self._store.get(key), ClosedRecord).reason == HEAD_LOST)
        except ObjectMissing:
            return None
        except msgspec.DecodeError as exc:
            log.warning("record of a session's end cannot be read", key=key, cause=str(exc))
            return Closing(closed_at)

    async def _newest_head(self, nodes: list[_Node]) -> tuple[_Node, Beat] | None:
        """The head that beat last: a new head incarnation starts only after the one before it stopped."""
        for start in range(0, len(nodes), _OPENED_AT_ONCE):
            some = nodes[start : start + _OPENED_AT_ONCE]
            for node, record in zip(some, await self._open(some), strict=True):
                if record and record.role == "head":
                    return node, Beat(node.beat_at, node.has_ended, record.interval_seconds)
        return None

    async def _open(self, nodes: Iterable[_Node]) -> list[NodeRecord | None]:
        return await asyncio.gather(*(self._record(node.key) for node in nodes))

    async def _record(self, key: str) -> NodeRecord | None:
        if (known := self._records.get(key)) is not None:
            return known
        try:
            record = decode_record(await self._store.get(key), NodeRecord)
        except (ObjectMissing, msgspec.DecodeError) as exc:
            log.warning("node record cannot be read", key=key, cause=str(exc))
            return None
        _remember(self._records, key, record)
        return record


def _is_last(end: datetime | None, beat: datetime) -> bool:
    """Whether an end was the last word: a collector that was restarted alone goes on beating after it."""
    return end is not None and end >= beat


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)
