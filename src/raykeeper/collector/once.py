"""`collector --once`: the history of a cluster that never had the collector, as far as it can still be had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.capture.answers import AnswerTaker, Say, Tally
from raykeeper.collector.capture.pages import MAX_ROWS, Row
from raykeeper.collector.capture.remote_logs import RemoteLogs, Streams
from raykeeper.collector.capture.state import StateTaker
from raykeeper.collector.identity import Identity
from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.node_records import LeftBehind, NodeRecords
from raykeeper.collector.poll.endpoints import JOBS, VERSION, dataset_endpoint, polled_endpoints
from raykeeper.collector.poll.facts import HeadFacts, parse_session_name, with_answer
from raykeeper.collector.poll.jobs import parse_jobs
from raykeeper.collector.raylet_ends import RayletEnd
from raykeeper.collector.session_records import RecordBucket, SessionRecords
from raykeeper.collector.sessions import SessionOnDisk
from raykeeper.errors import Unavailable
from raykeeper.layout.records import Delivery, MissingLog, Role
from raykeeper.ray.dashboard import Limits

CAPTURED = "captured"
"""Reason of an end: the cluster may live on, but nobody records it."""
DEAD = "dead before the capture"
LIMITS = Limits(answer_seconds=120.0, body_bytes=512 << 20)
"""10,000 tasks with their errors are tens of megabytes, and a head takes its time to list them."""
EXTRA = ("/events", "/logical/actors")  # carried by events and log files, where there was a collector

NOWHERE = Path("/nonexistent")
"""Folder of a session that is on another machine."""


@dataclass(frozen=True)
class Shipped:
    """What became of the log files on this machine."""

    files: int
    sent_bytes: int
    missing: tuple[MissingLog, ...] = ()


ShipLogs = Callable[[], Awaitable[Shipped]]


@dataclass(frozen=True)
class LocalLogs:
    """Log files of one node that are on this machine: read from disk, they come whole and cost Ray nothing."""

    node_id: str
    ship: ShipLogs
    """Sends all of them."""


@dataclass(frozen=True)
class Captured:
    """What a capture brought."""

    session: str
    tally: Tally

    @property
    def exit_code(self) -> int:
        """0 if nothing is missing, 3 if something is; what stops a capture is raised."""
        return 3 if self.tally.gaps else 0

    def report(self) -> list[str]:
        """Lines for the user."""
        tally = self.tally
        lines = [
            f"captured {self.session}: {tally.answers} answers with {tally.rows} rows, "
            f"{tally.log_files} log files of {tally.log_bytes} bytes"
        ]
        return lines + [f"missing: {gap}" for gap in tally.gaps]


class Capture:
    """Takes one cluster once. Raises Unavailable or RayRefused if its dashboard says nothing at all.

    The start is written before the data and the end after it, so that a capture that was stopped looks like one.
    """

    def __init__(
        self,
        dashboard: Streams,
        bucket: RecordBucket,
        identity: Identity,
        clock: Clock,
        say: Say,
        additional_endpoints: Sequence[str] = (),
    ) -> None:
        self._dashboard = dashboard
        self._bucket = bucket
        self._identity = identity
        self._clock = clock
        self._say = say
        self._endpoints = polled_endpoints(0.0, additional_endpoints)
        self._facts = HeadFacts()
        self._tally = Tally()

    async def take(self, local: LocalLogs | None = None, max_rows: int = MAX_ROWS) -> Captured:
        """Store all that the dashboard and the log folders hold."""
        session = await self._session()
        self._say(f"capturing {session}")
        taker = AnswerTaker(self._dashboard, self._bucket, self._identity.session(session), self._clock, self._tally)
        state = StateTaker(taker, self._tally, max_rows)
        await self._take_facts(taker)
        nodes = await state.take_nodes()
        starts = SessionRecords(self._identity, self._bucket, self._clock, lambda _session: self._facts)
        await starts.keep(SessionOnDisk(session, NOWHERE, _heads(nodes)), is_current=False)
        await self._take_changing(taker)
        await state.take_rest()
        self._say(f"{self._tally.answers} answers, {self._tally.rows} rows")
        for row in nodes:
            await self._take_node(session, row, starts, local)
        return Captured(session, self._tally)

    async def _session(self) -> str:
        answer = await self._dashboard.get(VERSION)
        try:
            name = parse_session_name(answer.body) if answer.is_ok else ""
        except msgspec.DecodeError:
            name = ""
        if not name:
            raise Unavailable("Ray dashboard", f"{VERSION} names no session, status {answer.status}")
        return name

    async def _take_facts(self, taker: AnswerTaker) -> None:
        for endpoint in self._endpoints:
            if endpoint.is_fact and (answer := await taker.take(endpoint.path, is_needed=True)):
                self._facts = with_answer(self._facts, endpoint.name, answer.body)

    async def _take_changing(self, taker: AnswerTaker) -> None:
        """What is polled of a cluster with a collector, and what its events would have carried."""
        for endpoint in self._endpoints:
            if endpoint.is_fact:
                continue
            answer = await taker.take(endpoint.path, endpoint.name)
            if answer is not None and endpoint.name == JOBS:
                for job_id in parse_jobs(answer.body):
                    await taker.take(dataset_endpoint(job_id, 0.0).path)
        for path in EXTRA:
            await taker.take(f"{path}?nocache=1", path)

    async def _take_node(self, session: str, row: Row, starts: SessionRecords, local: LocalLogs | None) -> None:
        """The records of one node and, if it lives, its logs."""
        node = _incarnation(row)
        identity = replace(
            self._identity,
            role=node.role or "worker",
            pod_ip=str(row.get("node_ip") or ""),
            hostname=str(row.get("node_name") or ""),
        )
        records = NodeRecords(identity.session(session), NOWHERE, node, identity, self._bucket, self._clock)
        if row.get("state") == "DEAD":
            at = datetime.fromtimestamp(_number(row.get("end_time_ms")) / 1000, UTC)
            await records.end_earlier(DEAD, LeftBehind(), Delivery(), RayletEnd(at, was_killed=False))
            return
        self._say(f"logs of node {node.node_id} ({identity.hostname or identity.pod_ip})")
        missing = await self._take_logs(session, node.node_id, local)
        end = await records.end(CAPTURED, LeftBehind(missing), Delivery())
        if end.role == "head":
            await starts.close(session, end)

    async def _take_logs(self, session: str, node_id: str, local: LocalLogs | None) -> tuple[MissingLog, ...]:
        if local is not None and local.node_id == node_id:
            shipped = await local.ship()
            self._tally.log_files += shipped.files
            self._tally.log_bytes += shipped.sent_bytes
            self._tally.gaps += [f"log {log.path}: {log.length} bytes not sent" for log in shipped.missing]
            return shipped.missing
        session_id = self._identity.session(session)
        return await RemoteLogs(self._dashboard, self._bucket, session_id, node_id, self._clock, self._tally).take()


def _incarnation(row: Row) -> NodeIncarnation:
    role: Role = "head" if row.get("is_head_node") else "worker"
    return NodeIncarnation(str(row["node_id"]), _number(row.get("start_time_ms")) * 1_000_000, role)


def _heads(rows: list[Row]) -> tuple[NodeIncarnation, ...]:
    """Head incarnations, oldest first."""
    nodes = [_incarnation(row) for row in rows if row.get("is_head_node")]
    return tuple(sorted(nodes, key=lambda node: node.appeared_ns))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
