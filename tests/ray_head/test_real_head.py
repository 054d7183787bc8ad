"""Poller, records and capture against a real Ray head. One head serves all of these tests."""

from __future__ import annotations

import asyncio
import json
import shlex
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from bed.fixtures import run_folder
from ray_head.live_head import TOKEN, LiveHead, live_head
from ray_head.memory_bucket import MemoryBucket
from raykeeper.clock import SystemClock
from raykeeper.collector.identity import Identity
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.once import LIMITS, Capture
from raykeeper.collector.poll.endpoints import NODE_STATISTICS
from raykeeper.collector.poll.poller import HeadPoller, PollSettings
from raykeeper.collector.ray_metrics import observe_dropped_events
from raykeeper.collector.records import Figures, Recorder
from raykeeper.collector.sessions import SessionWatch
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import (
    CatalogKey,
    SessionId,
    end_record_key,
    node_record_key,
    parse_polled_key,
    parse_sealed_key,
    session_record_key,
)
from raykeeper.layout.packs import parse_index, read_frame
from raykeeper.layout.records import CatalogEnd, Delivery, EndRecord, NodeRecord, SessionRecord
from raykeeper.ray.credentials import NoToken, StaticToken, bearer_headers
from raykeeper.ray.dashboard import Dashboard
from raykeeper.ray.errors import RayRefused
from support.conditions import eventually

pytestmark = [pytest.mark.bed, pytest.mark.timeout(300)]

EVENT_BUFFER = "RAY_DASHBOARD_AGGREGATOR_AGENT_MAX_EVENT_BUFFER_SIZE"
EVENT_SINK = "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"
IDENTITY = Identity("local", "c", "head")
WORK = """
import ray

@ray.remote(num_cpus=0)
def work(number):
    print("hello from", number)
    if number == 0:
        raise ValueError("this one fails")

@ray.remote(num_cpus=0)
class Counter:
    def count(self):
        return 1

ray.init()
counter = Counter.options(name="counter", lifetime="detached", namespace="n").remote()
assert ray.get(counter.count.remote()) == 1
ray.wait([work.remote(number) for number in range(25)], num_returns=25)
"""


@pytest.fixture(scope="module")
def head(request: pytest.FixtureRequest) -> Iterator[LiveHead]:
    """A head whose events nobody takes and whose agent holds ten of them, so that it loses some."""
    folder = run_folder(request.config) / f"ray-{uuid.uuid4().hex[:8]}"
    with live_head(folder, {EVENT_SINK: "http://127.0.0.1:9/v1/events", EVENT_BUFFER: "10"}) as started:
        asyncio.run(_has_worked(started))
        yield started


async def _has_worked(head: LiveHead) -> None:
    """Two submitted jobs came to their ends: one that did its work, one that failed."""
    dashboard = dashboard_of(head)
    await eventually(lambda: _answers(dashboard))
    await _submit(head, "works", f"python -c {shlex.quote(WORK)}")
    await _submit(head, "fails", "python -c 'raise SystemExit(3)'")
    await eventually(lambda: _are_over(dashboard), seconds=150.0)


async def _answers(dashboard: Dashboard) -> bool:
    try:
        return (await dashboard.get("/api/version")).is_ok and (await dashboard.get("/api/jobs/")).is_ok
    except Unavailable:
        return False


async def _submit(head: LiveHead, name: str, entrypoint: str) -> None:
    async with aiohttp.ClientSession(headers=bearer_headers(TOKEN)) as client:
        body = {"submission_id": name, "entrypoint": entrypoint}
        async with client.post(f"{head.address}/api/jobs/", json=body) as answer:
            assert answer.status == 200, await answer.text()


async def _are_over(dashboard: Dashboard) -> bool:
    jobs = json.loads((await dashboard.get("/api/jobs/")).body)
    return {job["submission_id"]: job["status"] for job in jobs} == {"works": "SUCCEEDED", "fails": "FAILED"}


def dashboard_of(head: LiveHead) -> Dashboard:
    return Dashboard(head.address, StaticToken(TOKEN), LIMITS)


def session_of(head: LiveHead) -> SessionId:
    return IDENTITY.session(head.session.name)


def true_start(head: LiveHead) -> datetime:
    """By the session's name, which is local time in Kathmandu."""
    local = datetime.strptime(head.session.name[8:34], "%Y-%m-%d_%H-%M-%S_%f").replace(tzinfo=UTC)
    return local - timedelta(hours=5, minutes=45)


def metrics() -> CollectorMetrics:
    return CollectorMetrics(CollectorRegistry())


class Disk:
    def current_session(self) -> str | None:
        return None


async def test_every_endpoint_is_there_and_its_answer_is_stored_under_the_heads_own_session(head: LiveHead) -> None:
    bucket = MemoryBucket()
    poller = HeadPoller(dashboard_of(head), Disk(), bucket, PollSettings("local", "c"), SystemClock(), metrics())
    await poller.poll()
    await poller.outbox.drain()
    for name in (
        "/api/version",
        "/api/v0/cluster_metadata",
        "/timezone",
        "/cluster_id",
        "/api/jobs/",
        "/api/serve/applications/",
        "/api/v0/placement_groups?detail=1&limit=10000",
        "/api/cluster_status?format=1",
        "/nodes?view=summary",
    ):
        assert len(bucket.polled(name, head.session.name)) == 1, name
    facts = poller.facts(head.session.name)
    assert (facts.ray_version, facts.utc_offset) == ("2.60.0", timedelta(hours=5, minutes=45))


async def test_a_second_look_at_an_idle_head_finds_nothing_new(head: LiveHead) -> None:
    """Whatever is volatile in Ray's answers is known to be."""
    bucket = MemoryBucket()
    poller = HeadPoller(dashboard_of(head), Disk(), bucket, PollSettings("local", "c", 0.01), SystemClock(), metrics())
    for _ in range(2):
        await poller.poll()
    await poller.last_poll(SystemClock().steady() + 30.0)
    stored = [facts.name for key in bucket.objects if (facts := parse_polled_key(key))]
    assert {"/api/jobs/", "/api/serve/applications/", "/api/cluster_status?format=1"} <= set(stored)
    assert {name for name in stored if stored.count(name) > 1} <= {NODE_STATISTICS}


async def test_without_the_token_a_head_refuses(head: LiveHead) -> None:
    with pytest.raises(RayRefused, match="401"):
        await Dashboard(head.address, NoToken()).get("/api/version")
    with pytest.raises(RayRefused, match="403"):
        await Dashboard(head.address, StaticToken("another-token-than-that")).get("/api/version")


async def test_records_of_a_running_head_say_its_true_start_and_what_ray_lost(head: LiveHead) -> None:
    bucket, clock = MemoryBucket(), SystemClock()
    watch = SessionWatch(head.root, clock)
    watch.poll()
    node = watch.node_of(head.session.name)
    assert node is not None
    dropped = await eventually(lambda: observe_dropped_events(head.session, node))
    assert dropped is not None
    recorder = Recorder(IDENTITY, watch, bucket, Figures(Delivery), clock, metrics())
    await recorder.end("terminated", {}, clock.steady() + 20.0)

    async def beat_with_losses() -> NodeRecord | None:
        """Ray's agent may be too busy to answer in time: then a heartbeat is written without what was lost."""
        await Recorder(IDENTITY, watch, bucket, Figures(Delivery), clock, metrics()).tick()
        beat = bucket.record(node_record_key(session_of(head), node), NodeRecord)
        return beat if beat.delivery.ray_dropped_events else None

    beat = await eventually(beat_with_losses)
    record = bucket.record(session_record_key(session_of(head)), SessionRecord)
    assert (record.started_at, record.head_node_id) == (true_start(head), node)
    assert beat is not None
    assert beat.role == "head"
    assert beat.delivery.ray_dropped_events >= dropped > 0


async def test_a_cluster_without_a_collector_is_captured_whole(head: LiveHead) -> None:
    bucket = MemoryBucket()
    captured = await Capture(dashboard_of(head), bucket, IDENTITY, SystemClock(), lambda _line: None).take()
    assert (captured.session, captured.tally.gaps, captured.exit_code) == (head.session.name, [], 0)
    tasks = rows(bucket, "/api/v0/tasks?detail=1&limit=10000")
    assert sum(task["name"] == "work" for task in tasks) == 25
    assert {task["error_type"] for task in tasks if task["state"] == "FAILED"} == {"TASK_EXECUTION_EXCEPTION"}
    assert "counter" in {actor["name"] for actor in rows(bucket, "/api/v0/actors?detail=1&limit=10000")}
    [jobs] = bucket.polled("/api/jobs/")
    assert {(job["submission_id"], job["driver_exit_code"]) for job in json.loads(bytes(jobs.body))} == {
        ("works", 0),
        ("fails", 3),
    }
    session = session_of(head)
    record = bucket.record(session_record_key(session), SessionRecord)
    assert (record.started_at, record.ray_version) == (true_start(head), "2.60.0")
    end = bucket.record(end_record_key(session, record.head_node_id), EndRecord)
    assert (end.reason, end.is_complete, end.role) == ("captured", True, "head")
    listed = bucket.record(CatalogKey(record.started_at.date(), session, "end").key, CatalogEnd)
    assert listed.head_node_id == record.head_node_id


async def test_captured_logs_are_those_on_disk_byte_for_byte(head: LiveHead) -> None:
    bucket = MemoryBucket()
    await Capture(dashboard_of(head), bucket, IDENTITY, SystemClock(), lambda _line: None).take()
    files = logs(bucket)
    on_disk = {
        str(path.relative_to(head.session / "logs")): path
        for path in (head.session / "logs").rglob("*")
        if path.is_file() and path.stat().st_size
    }
    assert "job-driver-works.log" in files
    assert any(b"hello from 24" in data for data in files.values())
    appended = on_disk.keys() - {"debug_state.txt"}  # rewritten in place all the time
    assert appended <= files.keys()
    for name in appended:
        now = on_disk[name].read_bytes()
        assert now.startswith(files[name]), name
        assert name.startswith(("worker-", "job-driver-")) <= (now == files[name]), name


async def test_a_list_that_is_too_long_for_one_answer_is_captured_in_parts(head: LiveHead) -> None:
    bucket = MemoryBucket()
    taker = Capture(dashboard_of(head), bucket, IDENTITY, SystemClock(), lambda _line: None)
    captured = await taker.take(max_rows=24)
    assert any("tasks" in gap and "only the first 24 rows" in gap for gap in captured.tally.gaps)
    assert captured.exit_code == 3
    parts = [json.loads(bytes(page.body)) for page in every_page(bucket, "/api/v0/tasks?")]
    found = {row["task_id"] for part in parts for row in part["data"]["result"]["result"] if row["name"] == "work"}
    assert len(found) == 25  # of 24 in one state, 1 in another


def rows(bucket: MemoryBucket, name: str) -> list[dict[str, Any]]:
    [page] = bucket.polled(name)
    found: list[dict[str, Any]] = json.loads(bytes(page.body))["data"]["result"]["result"]
    return found


def every_page(bucket: MemoryBucket, start: str) -> list[Any]:
    names = {facts.name for key in bucket.objects if (facts := parse_polled_key(key)) and facts.name.startswith(start)}
    return [page for name in names for page in bucket.polled(name)]


def logs(bucket: MemoryBucket) -> dict[str, bytes]:
    """Every captured file, put together from its frames."""
    files: dict[str, bytes] = {}
    for key in sorted(bucket.objects):
        if key.endswith(".pack") and parse_sealed_key(key):
            pack = bucket.objects[key]
            for frame in parse_index(pack).frames:
                assert frame.offset == len(files.get(frame.path, b""))
                data = read_frame(frame, pack[frame.position : frame.position + frame.size])
                files[frame.path] = files.get(frame.path, b"") + data
    return files
