"""The records of one node incarnation: its heartbeat and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.identity import Identity
from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.session_records import RecordBucket
from raykeeper.errors import RaykeeperError
from raykeeper.layout.keys import SessionId, end_record_key, node_record_key
from raykeeper.layout.records import Delivery, EndRecord, MissingLog, NodeRecord, Role, encode_record
from raykeeper.logs import Log

BEAT_SECONDS = 30.0
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
        return sum(missing.length for missing in self.missing_logs)

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
    ) -> None:
        self.session = session
        self.node = node
        self._folder = folder
        self._identity = identity
        self._bucket = bucket
        self._clock = clock
        self._next_beat = self._next_losses = self._next_clocks = 0.0
        self._clock_offset: float | None = None
        self._dropped = 0
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

    async def beat(
        self, delivery: Delivery, observe_losses: ObserveLosses, compare_clocks: CompareClocks | None
    ) -> bool:
        """Write the heartbeat; whether that was done. One not taken in its time is given up for the next."""
        now = self._clock.steady()
        self._next_beat = now + BEAT_SECONDS
        await self._look_for_losses(observe_losses, now)
        data = encode_record(self._node_record(delivery))
        key = node_record_key(self.session, self.node.node_id)
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                if compare_clocks is not None and now >= self._next_clocks:
                    await self._compare(compare_clocks, key, data, now)
                else:
                    await self._bucket.put(key, data)
        except TimeoutError:
            log.debug("heartbeat not written", node_id=self.node.node_id)
            return False
        return True

    async def end(self, reason: str, left: LeftBehind, delivery: Delivery) -> EndRecord:
        """Write the last heartbeat and the end of a node that lived until now."""
        await self._bucket.put(
            node_record_key(self.session, self.node.node_id), encode_record(self._node_record(delivery))
        )
        record = self._end_record(reason, left, delivery, self._clock.now())
        await self._bucket.put(self._end_key, encode_record(record))
        self._note_end(reason)
        return record

    async def end_earlier(self, reason: str, left: LeftBehind, delivery: Delivery, at: datetime) -> EndRecord | None:
        """Write the end of a node that is gone since `at`; None where it has written its own."""
        record = self._end_record(reason, left, delivery, at)
        is_new = await self._bucket.create(self._end_key, encode_record(record))
        self._note_end(reason)
        return record if is_new else None

    @property
    def _end_key(self) -> str:
        return end_record_key(self.session, self.node.node_id)

    def _note_end(self, reason: str) -> None:
        self.has_ended = True
        log.info("node ended", session=self.session.session, node_id=self.node.node_id, reason=reason)

    def _end_record(self, reason: str, left: LeftBehind, delivery: Delivery, at: datetime) -> EndRecord:
        return EndRecord(
            node_id=self.node.node_id,
            role=self.role,
            ended_at=at,
            reason=reason,
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

    async def _compare(self, compare: CompareClocks, key: str, data: bytes, now: float) -> None:
        try:
            self._clock_offset = -await compare(key, data)
        except RaykeeperError as exc:
            log.debug("clocks not compared", cause=str(exc))
            await self._bucket.put(key, data)  # which waits for a store that is away, and tells that it is
        else:
            self._next_clocks = now + CLOCKS_SECONDS

    def _node_record(self, delivery: Delivery) -> NodeRecord:
        return NodeRecord(
            node_id=self.node.node_id,
            role=self.role,
            started_at=datetime.fromtimestamp(self.node.appeared_ns / 1e9, UTC),
            beat_at=self._clock.now(),
            interval_seconds=BEAT_SECONDS,
            pod=self._identity.pod,
            pod_ip=self._identity.pod_ip,
            hostname=self._identity.hostname,
            clock_offset_seconds=self._clock_offset,
            delivery=self._with_losses(delivery),
        )

    def _with_losses(self, delivery: Delivery) -> Delivery:
        return msgspec.structs.replace(delivery, ray_dropped_events=self._dropped)
