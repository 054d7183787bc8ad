"""One recorded run of Ray 2.60: its events, its log trees, and what its dashboard answered at two moments.

`tests/golden/raycapture.tar.zst` (README inside) is unpacked once for a test run. `put_into` writes it into a store as
collectors would have: event segments, polled answers, log packs and records.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import zstandard

from raykeeper.collector.poll.endpoints import dataset_endpoint, polled_endpoints
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    LogPackKey,
    PolledKey,
    SessionId,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.packs import PackWriter
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import CatalogStart, NodeRecord, PolledAnswer, SessionRecord, encode_record
from raykeeper.layout.segments import compress_lines
from raykeeper.storage.store import ObjectStore

ARCHIVE = Path(__file__).parent.parent / "golden" / "raycapture.tar.zst"
SESSION_NAME = "session_2026-11-15_20-09-58_472817_9"
SESSION = SessionId("golden", "capture", SESSION_NAME)

Moment = Literal["final", "workerdead"]
MOMENTS: tuple[Moment, ...] = ("final", "workerdead")
ASKED_AT = {
    "final": datetime(2026, 11, 15, 20, 16, 59, tzinfo=UTC),
    "workerdead": datetime(2026, 11, 15, 20, 18, 22, tzinfo=UTC),
}
"""When the dashboard was asked: what happened later belongs to another moment."""

STARTED_AT = datetime(2026, 11, 15, 20, 9, 58, tzinfo=UTC)
EVENTS_PER_SEGMENT = 400
POLL_SECONDS = 30.0


@dataclass(frozen=True)
class RecordedNode:
    folder: Literal["head", "worker"]
    node_id: str
    ip: str


HEAD = RecordedNode("head", "50e5fdad77ec3b890555044ab3ca4b9304192b3d5f0b4025495048de", "10.77.0.1")
WORKER = RecordedNode("worker", "0b2d767e4b1f2d3bd55bbe371ee51cacc02d6202d0653cee8d8726b2", "10.77.0.2")
NODES = (HEAD, WORKER)


@dataclass(frozen=True)
class Recorded:
    """One request to Ray's dashboard and what it answered."""

    name: str
    method: str
    path: str
    headers: dict[str, str]
    status: int
    body: Any
    """JSON where the answer was JSON, else its text."""


@dataclass(frozen=True)
class RayCapture:
    """The unpacked archive."""

    folder: Path

    def requests(self, moment: Moment) -> Iterator[Recorded]:
        """All 337 of one moment, in the order in which they were sent. Two names stand for two paths each."""
        index = (self.folder / "api" / moment / "_index.tsv").read_text()
        for line in index.splitlines():
            name, path, *_ = line.split("\t")
            recorded = json.loads((self.folder / "api" / moment / f"{name}.json").read_text())
            request, response = recorded["request"], recorded["response"]
            body = response["json"] if "json" in response else response.get("text")
            yield Recorded(name, request["method"], path, request["headers"], response["status"], body)

    def extra(self, name: str) -> Any:
        """An answer of another run, where there was what this one lacks."""
        return json.loads((self.folder / "api" / "extra" / f"{name}.json").read_text())

    def events(self, node: RecordedNode, until: datetime) -> Iterator[dict[str, Any]]:
        """What a node's collector had received, by the events' own time."""
        last = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        for body in sorted((self.folder / "events" / node.folder).glob("0*.json")):
            yield from (event for event in json.loads(body.read_text()) if event["timestamp"] < last)

    def log_files(self, node: RecordedNode) -> dict[str, bytes]:
        """Every file under `logs/` of a node as it was at the end of the run."""
        logs = self.folder / "session" / node.folder / SESSION_NAME / "logs"
        files = sorted(file for file in logs.rglob("*") if file.is_file() and not file.is_symlink())
        return {str(file.relative_to(logs)): file.read_bytes() for file in files}


@pytest.fixture(scope="session")
def raycapture(tmp_path_factory: pytest.TempPathFactory) -> RayCapture:
    """The capture, unpacked for this run."""
    folder = tmp_path_factory.mktemp("raycapture")
    with (
        ARCHIVE.open("rb") as archive,
        zstandard.ZstdDecompressor().stream_reader(archive) as text,
        tarfile.open(fileobj=text, mode="r|") as tar,
    ):
        tar.extractall(folder, filter="data")
    return RayCapture(folder / "raycapture")


async def put_into(store: ObjectStore, capture: RayCapture, moment: Moment, session: SessionId = SESSION) -> SessionId:
    """Fill a store with what collectors had stored by then; the log trees are those of the end of the run."""
    await _put_records(store, session, ASKED_AT[moment])
    for node in NODES:
        await _put_events(store, capture, node, session, ASKED_AT[moment])
        await _put_logs(store, capture, node, session, ASKED_AT[moment])
    await _put_polled(store, capture, session, moment)
    return session


async def _put_records(store: ObjectStore, session: SessionId, until: datetime) -> None:
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    record = SessionRecord(
        **names, started_at=STARTED_AT, recorded_at=STARTED_AT, head_node_id=HEAD.node_id, ray_version="2.60.0"
    )
    start = CatalogStart(**names, started_at=STARTED_AT, ray_version="2.60.0")
    await store.put(session_record_key(session), encode_record(record))
    await store.put(CatalogKey(STARTED_AT.date(), session, "start").key, encode_record(start))
    for node in NODES:
        beat = NodeRecord(
            node_id=node.node_id,
            role=node.folder,
            started_at=STARTED_AT,
            beat_at=until,
            interval_seconds=30.0,
            pod_ip=node.ip,
        )
        await store.put(node_record_key(session, node.node_id), encode_record(beat))


async def _put_events(
    store: ObjectStore, capture: RayCapture, node: RecordedNode, session: SessionId, until: datetime
) -> None:
    lines = [msgspec.json.encode(event) for event in capture.events(node, until)]
    for number, start in enumerate(range(0, len(lines), EVENTS_PER_SEGMENT)):
        key = EventSegmentKey(session, node.node_id, _ns(until), number).key
        await store.put(key, compress_lines(lines[start : start + EVENTS_PER_SEGMENT]))


async def _put_logs(
    store: ObjectStore, capture: RayCapture, node: RecordedNode, session: SessionId, until: datetime
) -> None:
    pack = PackWriter()
    for number, (path, data) in enumerate(capture.log_files(node).items()):
        pack.add(path, f"{_ns(STARTED_AT)}-{number}", 0, data, _ns(until))
    await store.put(LogPackKey(session, node.node_id, _ns(until), 0).key, pack.to_bytes())


async def _put_polled(store: ObjectStore, capture: RayCapture, session: SessionId, moment: Moment) -> None:
    """The answers that a collector asks for, under the names it gives them."""
    answers = {recorded.path: recorded for recorded in capture.requests(moment)}
    jobs = [job["job_id"] for job in answers["/api/jobs/"].body if job["job_id"]]
    endpoints = [*polled_endpoints(POLL_SECONDS), *(dataset_endpoint(job, POLL_SECONDS) for job in jobs)]
    for endpoint in endpoints:
        recorded = answers[endpoint.name]
        answer = PolledAnswer(
            path=endpoint.name,
            polled_at=ASKED_AT[moment],
            status=recorded.status,
            body=msgspec.Raw(msgspec.json.encode(recorded.body)),
        )
        key = PolledKey(session, endpoint.name, _ns(ASKED_AT[moment]) // 1_000_000)
        await store.put(key.key, encode_polled(answer))


def _ns(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000_000
