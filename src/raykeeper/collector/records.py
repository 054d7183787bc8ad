"""Writes the records of sessions and nodes: starts, heartbeats, and ends with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
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
from raykeeper.collector.ray_metrics import observe_dropped_events
from raykeeper.collector.raylet_ends import RayletEnd, find_unseen_end
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.collector.session_records import RecordBucket, SessionRecords
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.layout.records import Delivery, EndRecord
from raykeeper.logs import Log
from raykeeper.times import from_ns

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

    def raylet_end(self, node_id: str) -> RayletEnd | None: ...

    def is_raylet_alive(self, node_id: str) -> bool: ...


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
    samples: Callable[[str, str], bytes] = lambda _session, _node_id: b""
    """Resource samples of a node, by session name and node id, that the bucket does not have yet."""


class Recorder:
    """Keeps the records of one pod: `tick` looks once, `run` for ever, `end` says good-bye.

    A node lives while it is the newest of the current session and its raylet listens. When the raylet is gone, a last
    heartbeat says since when and whether it was killed. How readers judge by that is in docs/storage-layout.md.
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
        self._ending_since: dict[NodePlace, float] = {}

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
                await self._safely(session.name, self._starts.keep(session, is_current=session.name == current))
        for session in sessions:
            for node in session.incarnations:
                newest = _is_newest(session, node, current)
                await self._safely(session.name, self._keep_node(session, node, is_newest=newest))

    async def end(
        self, reason: str, left: Mapping[NodePlace, LeftBehind], deadline: float, asked_at: datetime | None = None
    ) -> bool:
        """Write the end of every node that has none; whether that was done when the steady clock read `deadline`.

        Assumes that `run` has ended. What is not in `left` left nothing behind. A raylet that ended after `asked_at`,
        when this pod was told to end, was asked to end too, even if it had to be killed.
        """
        try:
            async with asyncio.timeout(deadline - self._clock.steady()):
                await self._end_all(reason, left, asked_at)
        except TimeoutError:
            log.warning("ends not written in time", reason=reason)
            return False
        return True

    async def _end_all(self, reason: str, left: Mapping[NodePlace, LeftBehind], asked_at: datetime | None) -> None:
        current = self._sessions.current_session()
        for session in sorted(self._sessions.sessions(), key=lambda session: session.name != current):
            await self._safely(session.name, self._end_session(session, reason, left, asked_at))

    async def _end_session(
        self,
        session: SessionOnDisk,
        reason: str,
        left: Mapping[NodePlace, LeftBehind],
        asked_at: datetime | None,
    ) -> None:
        current = self._sessions.current_session()
        if self._identity.role == "head":
            await self._starts.keep(session, is_current=False)  # a head that lived for seconds has a start too
        for node in session.incarnations:
            records = self._records_of(session, node)
            left_here = left.get((session.name, node.node_id), LeftBehind())
            if records.has_ended:
                continue
            if _is_newest(session, node, current):
                end = _asked_for(await asyncio.to_thread(self._newest_end, session, node), asked_at)
                await self._close(records, await records.end(reason, left_here, self._figures.delivery(), end))
            else:
                await self._end_replaced(session, records, left_here)

    async def _safely(self, session: str, keeping: Awaitable[None]) -> None:
        """Do one thing for a session; its trouble is not the others'."""
        try:
            await keeping
        except Exception:
            log.exception("records of a session not kept", session=session)

    async def _keep_node(self, session: SessionOnDisk, node: NodeIncarnation, *, is_newest: bool) -> None:
        records = self._records_of(session, node)
        if is_newest or (not records.has_ended and await self._still_listens(session, node)):
            await self._keep_newest(session, records)
        elif not records.has_ended:
            left = await self._left_by(session.name, node.node_id)
            if left is not None:
                await self._end_replaced(session, records, left)

    async def _still_listens(self, session: SessionOnDisk, node: NodeIncarnation) -> bool:
        """Whether a node lives though another session is called the latest: any process of the pod may call one so."""
        is_last = node == session.incarnations[-1]
        return is_last and await asyncio.to_thread(raylet_listens, session.path) is True

    def _newest_end(self, session: SessionOnDisk, node: NodeIncarnation) -> RayletEnd | None:
        """How the newest raylet ended; it may have been dead before this collector began."""
        seen = self._sessions.raylet_end(node.node_id)
        is_gone = raylet_listens(session.path) is False
        return find_unseen_end(session.path, node, is_last=True) if seen is None and is_gone else seen

    async def _keep_newest(self, session: SessionOnDisk, records: NodeRecords) -> None:
        end = self._sessions.raylet_end(records.node.node_id)
        if end is not None:
            await records.tell_raylet_end(end, self._figures.delivery())
        elif records.is_due and await asyncio.to_thread(raylet_listens, session.path) is not False:
            if self._sessions.is_raylet_alive(records.node.node_id):
                records.take_back_raylet_end()
            if await records.find_raylet_end() is None:
                await self._beat(records)

    async def _beat(self, records: NodeRecords) -> None:
        figures = self._figures
        if await records.beat(figures.delivery(), figures.observe_losses, figures.compare_clocks):
            self._metrics.heartbeats.inc()
        self._metrics.ray_dropped_events.set(records.dropped_events)

    def _records_of(self, session: SessionOnDisk, node: NodeIncarnation) -> NodeRecords:
        place = (session.name, node.node_id)
        if place not in self._nodes:
            session_id = self._identity.session(session.name)
            samples = partial(self._figures.samples, *place)
            self._nodes[place] = NodeRecords(
                session_id, session.path, node, self._identity, self._bucket, self._clock, samples
            )
        return self._nodes[place]

    async def _left_by(self, session: str, node_id: str) -> LeftBehind | None:
        """What a replaced node leaves behind; None while it is still being sent."""
        waited = self._clock.steady() - self._ending_since.setdefault((session, node_id), self._clock.steady())
        left = await self._figures.left_by(session, node_id)
        return left if left.is_nothing or waited >= REPLACED_END_SECONDS else None

    async def _end_replaced(self, session: SessionOnDisk, records: NodeRecords, left: LeftBehind) -> None:
        """End a node that another took over from: when its raylet was seen to end, or wrote its last log line."""
        node = records.node
        replaced = RayletEnd(self._replaced_at(node), was_killed=False)
        end = self._sessions.raylet_end(node.node_id)
        if end is None:
            is_last = node == session.incarnations[-1]
            unseen = await asyncio.to_thread(find_unseen_end, session.path, node, is_last=is_last) or replaced
            end = replace(unseen, at=min(unseen.at, replaced.at))
        await self._close(records, await records.end_earlier(REPLACED, left, self._figures.delivery(), end))

    def _replaced_at(self, node: NodeIncarnation) -> datetime:
        """When the next node of the pod began."""
        nodes = [other for session in self._sessions.sessions() for other in session.incarnations]
        later = [other.appeared_ns for other in nodes if other.appeared_ns > node.appeared_ns]
        return from_ns(min(later)) if later else self._clock.now()

    async def _close(self, records: NodeRecords, end: EndRecord | None) -> None:
        if end is not None and end.role == "head":
            await self._starts.close(records.session.session, end)


def _asked_for(end: RayletEnd | None, asked_at: datetime | None) -> RayletEnd | None:
    """An end after the pod was told to end is no crash."""
    return replace(end, was_killed=False) if end and asked_at and end.at >= asked_at else end


def _is_newest(session: SessionOnDisk, node: NodeIncarnation, current: str | None) -> bool:
    return session.name == current and node == session.incarnations[-1]
