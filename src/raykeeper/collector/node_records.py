"""The records of one node incarnation: its heartbeat and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.identity import Identity
from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.raylet_ends import RayletEnd
from raykeeper.collector.session_records import RecordBucket
from raykeeper.errors import RaykeeperError
from raykeeper.layout.keys import SessionId, end_record_key, node_record_key
from raykeeper.layout.records import (
    MAX_COUNT,
    RAYLET_KILLED,
    Delivery,
    EndRecord,
    MissingLog,
    NodeRecord,
    Role,
    decode_record,
    encode_record,
)
from raykeeper.logs import Log
from raykeeper.times import from_ns

BEAT_SECONDS = 30.0
HEAD_BEAT_SECONDS = 10.0
"""A head that is lost with its collector is missed soon; a cluster has one, so its heartbeats may cost more."""
LOSSES_SECONDS = 60.0  # between two looks at Ray's metrics, which cost its agent more than us
CLOCKS_SECONDS = 600.0  # clocks drift slowly, and each look is one more request to the store
MAX_MISSING_LOGS = 1000  # entries of an end record; the bytes are counted in full

log = Log("raykeeper.collector.records")

CompareClocks = Callable[[str, bytes], Awaitable[float]]
"""Puts an object and returns by how many seconds the store's clock is ahead of ours."""
ObserveLosses = Callable[[Path, str], Awaitable[int | None]]
"""What Ray dropped, by the session's folder and the node's id."""


@dataclass(frozen=True)
class LeftBehind:
    """What could not be sent before the end."""

    missing_logs: tuple[MissingLog, ...] = ()
    missing_event_bytes: int = 0

    @property
    def missing_log_bytes(self) -> int:
        return min(sum(missing.length for missing in self.missing_logs), MAX_COUNT)

    @property
    def is_nothing(self) -> bool:
        return not (self.missing_logs or self.missing_event_bytes)


class NodeRecords:
    """Writes the records of one node incarnation; it is their only writer."""

    def __init__(
        self,
        session: SessionId,
        folder: Path,
        node: NodeIncarnation,
        identity: Identity,
        bucket: RecordBucket,
        clock: Clock,
        samples: Callable[[], bytes] = bytes,
    ) -> None:
        self.session = session
        self.node = node
        self._folder = folder
        self._identity = identity
        self._bucket = bucket
        self._clock = clock
        self._samples = samples
        self._next_beat = self._next_losses = self._next_clocks = 0.0
        self._clock_offset: float | None = None
        self._dropped = 0
        self._raylet_end: RayletEnd | None = None
        self._is_known = False
        self._is_raylet_end_told = False
        self.has_ended = False

    @property
    def role(self) -> Role:
        return self.node.role or self._identity.role

    @property
    def dropped_events(self) -> int:
        """What Ray dropped, as far as it was told."""
        return self._dropped

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next heartbeat."""
        return self._clock.steady() >= self._next_beat

    @property
    def interval_seconds(self) -> float:
        return HEAD_BEAT_SECONDS if self.role == "head" else BEAT_SECONDS

    async def find_raylet_end(self) -> RayletEnd | None:
        """The end of the raylet that is known: one that was recorded before a collector was restarted stays."""
        if not self._is_known:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    self._raylet_end = _recorded_end(await self._bucket.find(self._node_key))
                self._is_known = True
                self._is_raylet_end_told = self._raylet_end is not None
        return self._raylet_end

    def take_back_raylet_end(self) -> None:
        """Forget an end that was recorded of a raylet that lives: it had only taken long to start."""
        self._raylet_end = None
        self._is_raylet_end_told = False
        self._is_known = True

    async def tell_raylet_end(self, end: RayletEnd, delivery: Delivery) -> None:
        """Write the last heartbeat at once: the raylet is gone. Cheap once that is done."""
        is_news = await self.find_raylet_end() is None
        if self._is_raylet_end_told or not (is_news or self.is_due):
            return
        self._raylet_end = self._raylet_end or end
        self._next_beat = self._clock.steady() + self.interval_seconds
        self._is_raylet_end_told = await self._put_beat(delivery)
        if self._is_raylet_end_told:
            log.info(
                "raylet ended",
                session=self.session.session,
                node_id=self.node.node_id,
                at=end.at.isoformat(),
                was_killed=end.was_killed,
            )

    async def beat(
        self, delivery: Delivery, observe_losses: ObserveLosses, compare_clocks: CompareClocks | None
    ) -> bool:
        """Write the heartbeat; whether that was done. One not taken in its time is given up for the next."""
        now = self._clock.steady()
        self._next_beat = now + self.interval_seconds
        await self._look_for_losses(observe_losses, now)
        return await self._put_beat(delivery, compare_clocks if now >= self._next_clocks else None)

    async def _put_beat(self, delivery: Delivery, compare_clocks: CompareClocks | None = None) -> bool:
        data = encode_record(self._node_record(delivery))
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                if compare_clocks is not None:
                    await self._compare(compare_clocks, self._node_key, data)
                else:
                    await self._bucket.put(self._node_key, data)
        except TimeoutError:
            log.debug("heartbeat not written", node_id=self.node.node_id)
            return False
        return True

    async def end(
        self, reason: str, left: LeftBehind, delivery: Delivery, raylet_end: RayletEnd | None = None
    ) -> EndRecord:
        """Write the last heartbeat and the end of a node that lived until now, or until its raylet ended."""
        self._raylet_end = await self.find_raylet_end() or raylet_end
        await self._bucket.put(self._node_key, encode_record(self._node_record(delivery)))
        record = self._end_record(reason, left, delivery, self._clock.now())
        await self._bucket.put(self._end_key, encode_record(record))
        self._note_end(record.reason)
        return record

    async def end_earlier(self, reason: str, left: LeftBehind, delivery: Delivery, end: RayletEnd) -> EndRecord | None:
        """Write the end of a node whose raylet is gone; None where an end is there that no heartbeat took back."""
        self._raylet_end = await self.find_raylet_end() or end
        record = self._end_record(reason, left, delivery, end.at)
        is_new = await self._bucket.create(self._end_key, encode_record(record))
        if not is_new and await self._is_recorded_end_older():
            await self._bucket.put(self._end_key, encode_record(record))
            is_new = True
        self._note_end(record.reason)
        return record if is_new else None

    async def _is_recorded_end_older(self) -> bool:
        """Whether the node went on beating after the end that is there: its collector was restarted alone."""
        end, beat = await self._bucket.find(self._end_key), await self._bucket.find(self._node_key)
        try:
            return bool(end and beat and decode_record(end, EndRecord).ended_at < _heard_at(beat))
        except msgspec.DecodeError:
            return True

    @property
    def _node_key(self) -> str:
        return node_record_key(self.session, self.node.node_id)

    @property
    def _end_key(self) -> str:
        return end_record_key(self.session, self.node.node_id)

    def _note_end(self, reason: str) -> None:
        self.has_ended = True
        log.info("node ended", session=self.session.session, node_id=self.node.node_id, reason=reason)

    def _end_record(self, reason: str, left: LeftBehind, delivery: Delivery, at: datetime) -> EndRecord:
        end = self._raylet_end or RayletEnd(at, was_killed=False)
        return EndRecord(
            node_id=self.node.node_id,
            role=self.role,
            ended_at=end.at,
            reason=RAYLET_KILLED if end.was_killed else reason,
            is_complete=left.is_nothing,
            missing_logs=left.missing_logs[:MAX_MISSING_LOGS],
            missing_log_bytes=left.missing_log_bytes,
            missing_event_bytes=left.missing_event_bytes,
            delivery=self._with_losses(delivery),
        )

    async def _look_for_losses(self, observe: ObserveLosses, now: float) -> None:
        if now >= self._next_losses:
            self._next_losses = now + LOSSES_SECONDS
            # An agent lives as long as its raylet: its count never goes back within one incarnation.
            self._dropped = max(self._dropped, await observe(self._folder, self.node.node_id) or 0)

    async def _compare(self, compare: CompareClocks, key: str, data: bytes) -> None:
        try:
            self._clock_offset = -await compare(key, data)
        except RaykeeperError as exc:
            log.debug("clocks not compared", cause=str(exc))
            await self._bucket.put(key, data)  # which waits for a store that is away, and tells that it is
        else:
            self._next_clocks = self._clock.steady() + CLOCKS_SECONDS

    def _node_record(self, delivery: Delivery) -> NodeRecord:
        return NodeRecord(
            node_id=self.node.node_id,
            role=self.role,
            started_at=from_ns(self.node.appeared_ns),
            beat_at=self._clock.now(),
            interval_seconds=self.interval_seconds,
            pod=self._identity.pod,
            pod_ip=self._identity.pod_ip,
            hostname=self._identity.hostname,
            clock_offset_seconds=self._clock_offset,
            raylet_gone_at=self._raylet_end.at if self._raylet_end else None,
            was_raylet_killed=self._raylet_end is not None and self._raylet_end.was_killed,
            delivery=self._with_losses(delivery),
            samples=self._samples(),
        )

    def _with_losses(self, delivery: Delivery) -> Delivery:
        return msgspec.structs.replace(delivery, ray_dropped_events=self._dropped)


def _recorded_end(data: bytes | None) -> RayletEnd | None:
    """The end of the raylet in a heartbeat that an earlier collector of the pod wrote."""
    try:
        beat = decode_record(data, NodeRecord) if data else None
    except msgspec.DecodeError:
        return None
    return RayletEnd(beat.raylet_gone_at, beat.was_raylet_killed) if beat and beat.raylet_gone_at else None


def _heard_at(data: bytes) -> datetime:
    beat = decode_record(data, NodeRecord)
    return beat.raylet_gone_at or beat.beat_at
