"""A capture of a cluster whose dashboard is unwell: what is missing is said, what is there is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ray_head.memory_bucket import MemoryBucket
from ray_head.scripted_head import SESSION, ScriptedHead, as_text, chunked, cut_short, scripted
from raykeeper.clock import SystemClock
from raykeeper.collector.capture.pages import KINDS, Page
from raykeeper.collector.capture.remote_logs import FRAME_BYTES, parse_listing, user_files_first
from raykeeper.collector.identity import Identity
from raykeeper.collector.once import Capture, LocalLogs, Shipped
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import SessionId, end_record_key, node_record_key, parse_sealed_key, session_record_key
from raykeeper.layout.packs import Frame, parse_index
from raykeeper.layout.records import EndRecord, MissingLog, NodeRecord, SessionRecord
from raykeeper.ray.dashboard import Dashboard
from raykeeper.ray.errors import RayRefused

HEAD, WORKER, GONE = "a" * 56, "b" * 56, "c" * 56
IDENTITY = Identity("local", "c", "head")
SESSION_ID = SessionId("local", "c", SESSION)
NODES = [
    {"node_id": HEAD, "is_head_node": True, "state": "ALIVE", "node_ip": "10.0.0.1", "start_time_ms": 1794773400000},
    {"node_id": WORKER, "is_head_node": False, "state": "ALIVE", "node_ip": "10.0.0.2", "start_time_ms": 1794773500000},
    {"node_id": GONE, "state": "DEAD", "start_time_ms": 1794773500000, "end_time_ms": 1794773600000},
]


def listed(rows: list[Any], warning: str = "") -> Any:
    return {"data": {"result": {"result": rows, "partial_failure_warning": warning}}}


def log_path(node: str, name: str) -> str:
    return f"/api/v0/logs/file?node_id={node}&filename={name}&lines=-1"


class Cluster(ScriptedHead):
    """A head and a worker with a log file each, and a node that is dead."""

    def __init__(self) -> None:
        super().__init__()
        for path in ("/api/v0/cluster_metadata", "/timezone", "/cluster_id"):
            self.say(path, {})
        for kind in KINDS:
            self.say(Page(kind).path, listed(NODES if kind == "nodes" else []))
        for node in (HEAD, WORKER):
            self.list_logs(node, {"worker_out": ["worker-1.out"], "internal": ["raylet.out"]})
            self.answer(log_path(node, "worker-1.out"), chunked(b"hello\n"))
            self.answer(log_path(node, "raylet.out"), chunked(b"x" * 300_000, b"y" * 300_000))

    def list_logs(self, node: str, groups: dict[str, list[str]], folder: str = "") -> None:
        self.say(f"/api/v0/logs?node_id={node}&glob={folder}%2A", {"data": {"result": groups}})


class Scene:
    def __init__(self, cluster: Cluster, address: str) -> None:
        self.cluster = cluster
        self.bucket = MemoryBucket()
        self.said: list[str] = []
        self.capture = Capture(Dashboard(address), self.bucket, IDENTITY, SystemClock(), self.said.append)

    async def run(self, local: LocalLogs | None = None) -> int:
        captured = await self.capture.take(local)
        self.said += captured.report()
        return captured.exit_code

    def end(self, node: str) -> EndRecord:
        return self.bucket.record(end_record_key(SESSION_ID, node), EndRecord)

    def frames(self, node: str) -> list[Frame]:
        return [
            frame
            for key, data in sorted(self.bucket.objects.items())
            if (facts := parse_sealed_key(key)) and facts.node_id == node
            for frame in parse_index(data).frames
        ]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    cluster = Cluster()
    async with scripted(cluster) as address:
        yield Scene(cluster, address)


async def test_every_node_gets_its_records_and_its_logs(scene: Scene) -> None:
    assert await scene.run() == 0
    assert [(scene.end(node).reason, scene.end(node).role) for node in (HEAD, WORKER, GONE)] == [
        ("captured", "head"),
        ("captured", "worker"),
        ("dead before the capture", "worker"),
    ]
    beat = scene.bucket.record(node_record_key(SESSION_ID, WORKER), NodeRecord)
    assert (beat.pod_ip, beat.started_at.timestamp()) == ("10.0.0.2", 1794773500)
    assert scene.bucket.record(session_record_key(SESSION_ID), SessionRecord).head_node_id == HEAD
    for node in (HEAD, WORKER):
        assert [(frame.path, frame.offset, frame.length) for frame in scene.frames(node)] == [
            ("worker-1.out", 0, 6),
            ("raylet.out", 0, FRAME_BYTES),
            ("raylet.out", FRAME_BYTES, FRAME_BYTES),
            ("raylet.out", 2 * FRAME_BYTES, 600_000 - 2 * FRAME_BYTES),
        ]
    assert scene.said[-1].startswith(f"captured {SESSION}: ")


async def test_files_in_folders_are_found(scene: Scene) -> None:
    scene.cluster.list_logs(HEAD, {"internal": ["serve/", "./", "../"]})
    scene.cluster.list_logs(HEAD, {"internal": ["serve/deep/"]}, "serve%2F")
    scene.cluster.list_logs(HEAD, {"internal": ["serve/deep/a.log"]}, "serve%2Fdeep%2F")
    scene.cluster.answer(log_path(HEAD, "serve%2Fdeep%2Fa.log"), chunked(b"deep"))
    assert await scene.run() == 0
    assert [frame.path for frame in scene.frames(HEAD)] == ["serve/deep/a.log"]


async def test_a_log_that_breaks_off_is_kept_as_far_as_it_came_and_said_to_be_missing(scene: Scene) -> None:
    scene.cluster.answer(log_path(WORKER, "worker-1.out"), cut_short)
    assert await scene.run() == 3
    end = scene.end(WORKER)
    assert (end.is_complete, [missing.path for missing in end.missing_logs]) == (False, ["worker-1.out"])
    assert any("worker-1.out" in line and "not whole" in line for line in scene.said)
    assert "raylet.out" in {frame.path for frame in scene.frames(WORKER)}


async def test_a_log_that_is_answered_with_an_error_is_said(scene: Scene) -> None:
    """So does Ray 2.52 with empty ones."""
    scene.cluster.answer(log_path(HEAD, "raylet.out"), as_text("Server got itself in trouble", 500))
    assert await scene.run() == 3
    assert any("answered with an error" in line and "raylet.out" in line for line in scene.said)


async def test_a_node_whose_logs_cannot_be_listed_costs_the_others_nothing(scene: Scene) -> None:
    scene.cluster.say(f"/api/v0/logs?node_id={HEAD}&glob=%2A", "agent is gone", status=500)
    assert await scene.run() == 3
    assert not scene.frames(HEAD)
    assert scene.frames(WORKER)


@pytest.mark.parametrize("answer", [b"garbage", json.dumps(listed([], "2 of 3 nodes did not answer")).encode()])
async def test_a_list_that_is_not_whole_is_said(scene: Scene, answer: bytes) -> None:
    scene.cluster.answer(Page("workers").path, as_text(answer))
    assert await scene.run() == 3
    assert any("missing: /api/v0/workers" in line for line in scene.said)


async def test_logs_on_this_machine_are_read_from_disk(scene: Scene) -> None:
    async def ship() -> Shipped:
        return Shipped(1, 5, (MissingLog(path="raylet.out", offset=5, length=7),))

    assert await scene.run(LocalLogs(HEAD, ship)) == 3
    assert not scene.frames(HEAD)
    assert scene.end(HEAD).missing_log_bytes == 7
    assert scene.frames(WORKER)


async def test_a_cluster_that_cannot_be_asked_is_not_captured(scene: Scene) -> None:
    scene.cluster.answer("/api/version", as_text("no token", 401))
    with pytest.raises(RayRefused, match="refused with 401"):
        await scene.run()
    assert scene.bucket.objects == {}


async def test_a_dashboard_that_names_no_session_is_not_captured(scene: Scene) -> None:
    scene.cluster.say("/api/version", {"ray_version": "2.40.0"})
    with pytest.raises(Unavailable, match="names no session"):
        await scene.run()


def test_a_full_page_is_split_by_job_then_state_then_name() -> None:
    page = Page("tasks", max_rows=2)
    [by_job] = page.parts([{"job_id": "01000000"}], ["01000000"])
    assert by_job.filters == (("job_id", "01000000"),)
    by_state = by_job.parts([], [])
    assert {part.filters[-1] for part in by_state} >= {("state", "FINISHED"), ("state", "FAILED"), ("state", "RUNNING")}
    by_name = by_state[0].parts([{"name": "f g"}, {"name": "f g"}, {"name": None}], [])
    assert [part.path.rpartition("&")[2] for part in by_name] == ["filter_values=f%20g"]
    assert by_name[0].parts([{"name": "f g"}], []) == []


def test_users_output_comes_first() -> None:
    assert user_files_first(["raylet.out", "worker-1.out", "job-driver-a.log"]) == [
        "job-driver-a.log",
        "worker-1.out",
        "raylet.out",
    ]


def test_a_listing_has_files_and_folders() -> None:
    body = b'{"data": {"result": {"internal": ["old/", "./", "a"], "agent": ["b", "a"]}}}'
    assert parse_listing(body) == (["a", "b"], ["old/"])
