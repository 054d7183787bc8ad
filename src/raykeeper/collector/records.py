"""Who lives and who has ended, for all to read: sessions from their start, nodes by heartbeat, ends with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from raykeeper.clock import Clock
from raykeeper.collector.identity import Identity
from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.node_records import (
    BEAT_SECONDS,
    CompareClocks,
    LeftBehind,
    NodeRecords,
    ObserveLosses,
)
from raykeeper.collector.poll.facts import HeadFacts
from raykeeper.collector.ray_losses import observe_dropped_events
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.collector.session_records import RecordBucket, SessionRecords
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.layout.records import Delivery, EndRecord
from raykeeper.logs import Log

TICK_SECONDS = 1.0
REPLACED = "replaced"
"""Reason of an end: the raylet's place in the pod was taken by another."""
REPLACED_END_SECONDS = 10 * BEAT_SECONDS
"""How long the end of a replaced node waits for its last data to be sent; then it says what is missing."""

log = Log("raykeeper.collector.records")

NodePlace = tuple[str, str]
"""Session name and node id."""


class Sessions(Protocol):
    """The part of what is known from the disk that is needed here."""

    def current_session(self) -> str | None: ...

    def sessions(self) -> tuple[SessionOnDisk, ...]: ...


async def _nothing(_session: str, _node_id: str) -> LeftBehind:
    return LeftBehind()


@dataclass(frozen=True)
class Figures:
    """Where the figures of a heartbeat come from."""

    delivery: Callable[[], Delivery]
    """How far the collector is, over all its nodes."""
    facts: Callable[[str], HeadFacts] = lambda _session: HeadFacts()
    """What the head says about itself in a session."""
    left_by: Callable[[str, str], Awaitable[LeftBehind]] = _nothing
    """What of one node's data, by session name and node id, is not in the bucket yet."""
    observe_losses: ObserveLosses = observe_dropped_events
    compare_clocks: CompareClocks | None = None


class Recorder:
    """Keeps the records of one pod: `tick` looks once, `run` for ever, `end` says good-bye.

    A node lives while it is the newest of the current session and its raylet listens. A reader takes a node for ended
    if it has an `end.json` and no heartbeat later than that: a collector that is restarted alone goes on beating.
    """

    def __init__(
        self,
        identity: Identity,
        sessions: Sessions,
        bucket: RecordBucket,
        figures: Figures,
        clock: Clock,
        metrics: CollectorMetrics,
    ) -> None:
        self._identity = identity
        self._sessions = sessions
        self._bucket = bucket
        self._figures = figures
        self._clock = clock
        self._metrics = metrics
        self._starts = SessionRecords(identity, bucket, clock, figures.facts)
        self._nodes: dict[NodePlace, NodeRecords] = {}
        self._replaced_at: dict[NodePlace, float] = {}

    async def run(self) -> None:
        """Keep the records until cancelled."""
        while True:
            try:
                await self.tick()
            except Exception:
                log.exception("records not kept")
            await asyncio.sleep(TICK_SECONDS)

    async def tick(self) -> None:
        """Write what is due now: starts before heartbeats, heartbeats before ends of others."""
        current = self._sessions.current_session()
        sessions = self._sessions.sessions()
        for session in sessions:
            if self._identity.role == "head":
                await self._starts.keep(session, is_current=session.name == current)
        for session in sessions:
            for node in session.incarnations:
                await self._keep_node(session, node, is_newest=_is_newest(session, node, current))

    async def end(self, reason: str, left: Mapping[NodePlace, LeftBehind], deadline: float) -> bool:
        """Write the end of every node that has none; whether that was done when the steady clock read `deadline`.

        Assumes that `run` has ended. What is not in `left` left nothing behind.
        """
        try:
            async with asyncio.timeout(deadline - self._clock.steady()):
                await self._end_all(reason, left)
        except TimeoutError:
            log.warning("ends not written in time", reason=reason)
            return False
        return True

    async def _end_all(self, reason: str, left: Mapping[NodePlace, LeftBehind]) -> None:
        current = self._sessions.current_session()
        for session in self._sessions.sessions():
            if self._identity.role == "head":
                await self._starts.keep(session, is_current=False)  # a head that lived for seconds has a start too
            for node in session.incarnations:
                records = self._records_of(session, node)
                left_here = left.get((session.name, node.node_id), LeftBehind())
                if records.has_ended:
                    continue
                if _is_newest(session, node, current):
                    await self._close(records, await records.end(reason, left_here, self._figures.delivery()))
                else:
                    await self._end_replaced(records, left_here)

    async def _keep_node(self, session: SessionOnDisk, node: NodeIncarnation, *, is_newest: bool) -> None:
        records = self._records_of(session, node)
        if is_newest:
            if records.is_due and raylet_listens(session.path) is not False:
                await self._beat(records)
        elif not records.has_ended:
            left = await self._left_by(session.name, node.node_id)
            if left is not None:
                await self._end_replaced(records, left)

    async def _beat(self, records: NodeRecords) -> None:
        figures = self._figures
        if await records.beat(figures.delivery(), figures.observe_losses, figures.compare_clocks):
            self._metrics.heartbeats.inc()
        self._metrics.ray_dropped_events.set(records.dropped_events)

    def _records_of(self, session: SessionOnDisk, node: NodeIncarnation) -> NodeRecords:
        place = (session.name, node.node_id)
        if place not in self._nodes:
            session_id = self._identity.session(session.name)
            self._nodes[place] = NodeRecords(session_id, session.path, node, self._identity, self._bucket, self._clock)
        return self._nodes[place]

    async def _left_by(self, session: str, node_id: str) -> LeftBehind | None:
        """What a replaced node leaves behind; None while it is still being sent."""
        waited = self._clock.steady() - self._replaced_at.setdefault((session, node_id), self._clock.steady())
        left = await self._figures.left_by(session, node_id)
        return left if left.is_nothing or waited >= REPLACED_END_SECONDS else None

    async def _end_replaced(self, records: NodeRecords, left: LeftBehind) -> None:
        """End a node that another took over from, at the time when that one began."""
        later = [
            node.appeared_ns
            for session in self._sessions.sessions()
            for node in session.incarnations
            if node.appeared_ns > records.node.appeared_ns
        ]
        at = datetime.fromtimestamp(min(later) / 1e9, UTC) if later else self._clock.now()
        await self._close(records, await records.end_earlier(REPLACED, left, self._figures.delivery(), at))

    async def _close(self, records: NodeRecords, end: EndRecord | None) -> None:
        if end is not None and end.role == "head":
            await self._starts.close(records.session.session, end)


def _is_newest(session: SessionOnDisk, node: NodeIncarnation, current: str | None) -> bool:
    return session.name == current and node == session.incarnations[-1]
