"""The records of sessions and nodes, from their start to their end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from collector.ray_folders import NODE_A, NODE_B, SESSION, a_port_file, a_session, raylet_text, written
from ray_head.memory_bucket import MemoryBucket
from raykeeper.collector.identity import Identity
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.node_records import LeftBehind
from raykeeper.collector.poll.facts import HeadFacts
from raykeeper.collector.records import REPLACED_END_SECONDS, Figures, Recorder
from raykeeper.collector.sessions import SessionWatch
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import (
    CatalogKey,
    CatalogPart,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import (
    RAYLET_KILLED,
    CatalogEnd,
    CatalogStart,
    Delivery,
    EndRecord,
    MissingLog,
    NodeRecord,
    SessionRecord,
)
from support.clocks import ManualClock

HEAD = Identity("ns", "c", "head", owner_kind="RayJob", owner_name="j", pod="c-head", collector_version="0.1.0")
STARTED = datetime(2026, 11, 15, 20, 9, 58, 472817, tzinfo=UTC)
DAY = STARTED.date()
OTHER = "session_2026-11-16_01-00-00_000001_9"
KNOWN = HeadFacts("2.60.0", "b7f4", "3.11.7", timedelta(0))


def session_id(name: str = SESSION) -> SessionId:
    return SessionId("ns", "c", name)


def catalog_key(part: CatalogPart, name: str = SESSION, day: date = DAY) -> str:
    return CatalogKey(day, session_id(name), part).key


@dataclass
class Scene:
    """A pod's disk, a bucket, and the recorder between them."""

    root: Path
    identity: Identity = HEAD
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    clock: ManualClock = field(default_factory=lambda: ManualClock(now=STARTED + timedelta(seconds=5)))
    facts: HeadFacts = KNOWN
    delivery: Delivery = field(default_factory=Delivery)
    left: LeftBehind = field(default_factory=LeftBehind)
    dropped: int | None = 0
    store_ahead: float | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A collector that knows nothing, beside the same disk and bucket."""
        self.watch = SessionWatch(self.root, self.clock)
        self.metrics = CollectorMetrics(CollectorRegistry())
        compare = None if self.store_ahead is None else self._compare
        figures = Figures(lambda: self.delivery, lambda _session: self.facts, self._left, self._losses, compare)
        self.recorder = Recorder(self.identity, self.watch, self.bucket, figures, self.clock, self.metrics)

    async def tick(self, seconds_later: float = 0.0) -> None:
        self.clock.advance(seconds_later)
        self.watch.poll()
        await self.recorder.tick()

    async def end(self, left: LeftBehind | None = None) -> bool:
        self.watch.poll()
        places = {(SESSION, NODE_A): left} if left else {}
        return await self.recorder.end("terminated", places, self.clock.steady() + 5.0)

    def session_record(self, name: str = SESSION) -> SessionRecord:
        return self.bucket.record(session_record_key(session_id(name)), SessionRecord)

    def heartbeat(self, node: str = NODE_A, name: str = SESSION) -> NodeRecord:
        return self.bucket.record(node_record_key(session_id(name), node), NodeRecord)

    def node_end(self, node: str = NODE_A, name: str = SESSION) -> EndRecord:
        return self.bucket.record(end_record_key(session_id(name), node), EndRecord)

    async def _left(self, session: str, node_id: str) -> LeftBehind:
        return self.left if (session, node_id) == (SESSION, NODE_A) else LeftBehind()

    async def _losses(self, folder: Path, node_id: str) -> int | None:
        return self.dropped

    async def _compare(self, key: str, data: bytes) -> float:
        await self.bucket.put(key, data)
        assert self.store_ahead is not None
        return self.store_ahead


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A head that began just now."""
    a_port_file(a_session(tmp_path), NODE_A, "gcs_server", at=STARTED.timestamp() + 1)
    return Scene(tmp_path)


class Raylet:
    """The socket of a raylet, by which its life is seen."""

    def __init__(self, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = session / "sockets"
        self._folder.mkdir()
        self._monkeypatch = monkeypatch
        self._socket = socket.socket(socket.AF_UNIX)

    def listen(self) -> None:
        with self._monkeypatch.context() as context:
            context.chdir(self._folder)  # the whole path is longer than a socket's may be
            self._socket.bind("raylet")
        self._socket.listen()

    def be_killed(self) -> None:
        self._socket.close()

    def end(self) -> None:
        self._socket.close()
        (self._folder / "raylet").unlink()


@pytest.fixture
def raylet(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Raylet]:
    raylet = Raylet(scene.root / SESSION, monkeypatch)
    yield raylet
    raylet.be_killed()


async def test_a_session_is_recorded_at_its_start_with_all_that_is_known(scene: Scene) -> None:
    await scene.tick()
    assert scene.session_record() == SessionRecord(
        namespace="ns",
        cluster="c",
        session=SESSION,
        started_at=STARTED,
        recorded_at=scene.clock.now(),
        head_node_id=NODE_A,
        owner_kind="RayJob",
        owner_name="j",
        ray_version="2.60.0",
        ray_commit="b7f4",
        python_version="3.11.7",
        collector_version="0.1.0",
    )
    start = scene.bucket.record(catalog_key("start"), CatalogStart)
    assert (start.started_at, start.ray_version, start.head_node_id) == (STARTED, "2.60.0", NODE_A)


async def test_a_session_waits_ten_seconds_for_rays_version_and_no_longer(scene: Scene) -> None:
    scene.facts = HeadFacts()
    await scene.tick()
    await scene.tick(9.0)
    assert session_record_key(session_id()) not in scene.bucket.objects
    await scene.tick(1.0)
    assert scene.session_record().ray_version == ""


async def test_a_version_that_came_late_is_in_the_catalog(scene: Scene) -> None:
    scene.facts = HeadFacts()
    await scene.tick()
    await scene.tick(10.0)
    scene.facts = KNOWN
    await scene.tick(1.0)
    assert scene.bucket.record(catalog_key("start"), CatalogStart).ray_version == "2.60.0"
    assert scene.session_record().ray_version == ""


async def test_a_worker_records_no_session(scene: Scene) -> None:
    scene.identity = replace(HEAD, role="worker")
    scene.restart()
    await scene.tick(60.0)
    await scene.end()
    assert set(scene.bucket.objects) == {
        node_record_key(session_id(), NODE_A),
        end_record_key(session_id(), NODE_A),
    }


async def test_starts_are_written_again_unchanged_once_a_day(scene: Scene) -> None:
    await scene.tick()
    before = dict(scene.bucket.objects)
    await scene.tick(24 * 3600 - 1)
    assert scene.bucket.puts.count(session_record_key(session_id())) == 0
    await scene.tick(1.0)
    assert scene.bucket.puts.count(session_record_key(session_id())) == 1
    assert scene.bucket.puts.count(catalog_key("start")) == 2
    for key in (session_record_key(session_id()), catalog_key("start")):
        assert scene.bucket.objects[key] == before[key]


async def test_a_heads_heartbeat_comes_every_ten_seconds_with_the_figures_of_delivery(scene: Scene) -> None:
    scene.delivery = Delivery(events_accepted=7, oldest_unsent_seconds=1.5)
    scene.dropped = 3
    await scene.tick()
    first = scene.heartbeat()
    assert first.delivery == Delivery(events_accepted=7, oldest_unsent_seconds=1.5, ray_dropped_events=3)
    assert (first.role, first.pod, first.started_at) == (
        "head",
        "c-head",
        STARTED + timedelta(seconds=1),
    )
    await scene.tick(9.0)
    assert scene.heartbeat() == first
    await scene.tick(1.0)
    assert scene.heartbeat().beat_at == first.beat_at + timedelta(seconds=10)


async def test_a_workers_heartbeat_comes_every_thirty_seconds(scene: Scene) -> None:
    scene.identity = replace(HEAD, role="worker")
    (scene.root / SESSION / f"gcs_server_port_{NODE_A}").rename(scene.root / SESSION / f"metrics_agent_port_{NODE_A}")
    scene.restart()
    await scene.tick()
    first = scene.heartbeat()
    await scene.tick(29.0)
    assert scene.heartbeat() == first
    await scene.tick(1.0)
    assert scene.heartbeat().beat_at == first.beat_at + timedelta(seconds=30)


async def test_heartbeats_and_rays_losses_are_in_the_metrics(scene: Scene) -> None:
    scene.dropped = 7
    await scene.tick()
    await scene.tick(seconds_later=31.0)
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_heartbeats_total") == 2
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_ray_dropped_events") == 7


async def test_rays_losses_are_kept_when_its_metrics_are_silent(scene: Scene) -> None:
    scene.dropped = 3
    await scene.tick()
    scene.dropped = None
    await scene.tick(60.0)
    assert scene.heartbeat().delivery.ray_dropped_events == 3


async def test_the_nodes_distance_from_the_stores_clock_is_recorded(scene: Scene) -> None:
    scene.store_ahead = 2.5
    scene.restart()
    await scene.tick()
    assert scene.heartbeat().clock_offset_seconds is None
    await scene.tick(30.0)
    assert scene.heartbeat().clock_offset_seconds == -2.5


async def test_a_heartbeat_is_written_although_clocks_cannot_be_compared(scene: Scene) -> None:
    async def refuse(_key: str, _data: bytes) -> float:
        raise Unavailable("store", "its clock is not told")

    figures = Figures(lambda: scene.delivery, compare_clocks=refuse, observe_losses=scene._losses)
    recorder = Recorder(HEAD, scene.watch, scene.bucket, figures, scene.clock, scene.metrics)
    scene.watch.poll()
    await recorder.tick()
    assert scene.heartbeat().clock_offset_seconds is None


async def test_a_heartbeat_is_not_held_up_by_an_outage(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raykeeper.collector.node_records.BEAT_SECONDS", 0.05)
    await scene.tick()
    scene.bucket.go_away()
    await scene.tick(30.0)
    scene.bucket.come_back()
    await scene.tick(30.0)
    assert scene.heartbeat().beat_at == scene.clock.now()


async def test_a_dead_raylet_has_no_heartbeat(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = scene.root / SESSION / "sockets"
    folder.mkdir()
    monkeypatch.chdir(folder)  # the whole path is longer than a socket's may be
    with socket.socket(socket.AF_UNIX) as raylet:
        raylet.bind("raylet")
    await scene.tick(30.0)
    assert node_record_key(session_id(), NODE_A) not in scene.bucket.objects
    assert session_record_key(session_id()) in scene.bucket.objects


async def test_the_time_and_the_kind_of_a_raylets_death_are_written_at_once(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    raylet.be_killed()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    assert (scene.heartbeat().raylet_gone_at, scene.heartbeat().was_raylet_killed) == (died_at, True)
    last = scene.heartbeat()
    await scene.tick(600.0)
    assert scene.heartbeat() == last  # a dead raylet's heartbeat is not repeated


async def test_a_raylet_that_was_asked_to_end_did_not_crash(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    raylet.end()
    await scene.tick(1.0)
    ended_at = scene.clock.now()
    assert (scene.heartbeat().raylet_gone_at, scene.heartbeat().was_raylet_killed) == (ended_at, False)
    scene.clock.advance(5.0)
    await scene.end()
    assert (scene.node_end().ended_at, scene.node_end().reason) == (ended_at, "terminated")


async def test_a_raylet_that_was_killed_while_it_drained_did_not_crash(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    written(
        scene.root / SESSION / "logs/raylet.out", raylet_text(NODE_A) + b"(raylet) Node received SIGTERM; draining\n"
    )
    raylet.be_killed()
    await scene.tick(1.0)
    assert not scene.heartbeat().was_raylet_killed


async def test_a_raylet_that_ended_in_good_order_because_its_agent_died_crashed(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    told = b"(raylet) main.cc:481: Raylet graceful shutdown triggered with death info: reason: UNEXPECTED_TERMINATION\n"
    written(scene.root / SESSION / "logs/raylet.out", raylet_text(NODE_A) + told)
    raylet.end()
    await scene.tick(1.0)
    assert scene.heartbeat().was_raylet_killed


async def test_a_raylet_whose_agent_died_after_it_was_asked_to_end_did_not_crash(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    told = b"(raylet) Node received SIGTERM; draining\n(raylet) death info: reason: UNEXPECTED_TERMINATION\n"
    written(scene.root / SESSION / "logs/raylet.out", raylet_text(NODE_A) + told)
    raylet.end()
    await scene.tick(1.0)
    assert not scene.heartbeat().was_raylet_killed


async def test_a_crash_stays_one_when_the_collector_ends_later(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    raylet.be_killed()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    scene.clock.advance(1000.0)
    await scene.end()
    assert (scene.node_end().ended_at, scene.node_end().reason) == (died_at, RAYLET_KILLED)
    listed = scene.bucket.record(catalog_key("end"), CatalogEnd)
    assert (listed.ended_at, listed.reason) == (died_at, RAYLET_KILLED)


async def test_a_raylet_that_dies_after_its_pod_was_told_to_end_did_not_crash(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    asked_at = scene.clock.now()
    raylet.be_killed()
    scene.clock.advance(30.0)
    scene.watch.poll()
    assert await scene.recorder.end("terminated", {}, scene.clock.steady() + 5.0, asked_at)
    assert (scene.node_end().ended_at, scene.node_end().reason) == (scene.clock.now(), "terminated")


async def test_a_crash_stays_one_when_ray_starts_again_in_the_same_folder(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    raylet.be_killed()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    a_port_file(a_session(scene.root, OTHER), NODE_B, "gcs_server", at=STARTED.timestamp() + 600)
    await scene.tick(600.0)
    assert (scene.node_end().ended_at, scene.node_end().reason) == (died_at, RAYLET_KILLED)


async def test_a_collector_that_starts_beside_a_dead_raylet_tells_when_it_died(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    raylet.be_killed()
    written(scene.root / SESSION / "logs/raylet.out", raylet_text(NODE_A), at=STARTED.timestamp() + 120)
    await scene.tick(300.0)
    assert node_record_key(session_id(), NODE_A) not in scene.bucket.objects  # it may be starting
    await scene.tick(15.0)
    beat = scene.heartbeat()
    assert (beat.raylet_gone_at, beat.was_raylet_killed) == (STARTED + timedelta(seconds=120), True)


async def test_a_raylet_that_only_took_long_to_start_lives(scene: Scene, raylet: Raylet) -> None:
    await scene.tick()
    await scene.tick(15.0)
    assert scene.heartbeat().raylet_gone_at is not None
    raylet.listen()
    await scene.tick(10.0)
    assert scene.heartbeat().raylet_gone_at is None
    raylet.be_killed()
    await scene.tick(1.0)
    assert (scene.heartbeat().raylet_gone_at, scene.heartbeat().was_raylet_killed) == (scene.clock.now(), True)


async def test_a_collector_that_ends_beside_a_raylet_it_never_saw_alive_tells_its_death(
    scene: Scene, raylet: Raylet
) -> None:
    raylet.listen()
    raylet.be_killed()
    written(scene.root / SESSION / "logs/raylet.out", raylet_text(NODE_A), at=STARTED.timestamp() + 120)
    await scene.tick(300.0)
    await scene.end()
    assert (scene.node_end().ended_at, scene.node_end().reason) == (STARTED + timedelta(seconds=120), RAYLET_KILLED)


async def test_a_restarted_collector_keeps_the_time_that_was_recorded(scene: Scene, raylet: Raylet) -> None:
    raylet.listen()
    await scene.tick()
    raylet.be_killed()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    scene.restart()
    await scene.tick(300.0)
    await scene.tick(300.0)
    assert scene.heartbeat().raylet_gone_at == died_at
    await scene.end()
    assert (scene.node_end().ended_at, scene.node_end().reason) == (died_at, RAYLET_KILLED)


async def test_a_later_death_replaces_the_end_that_a_collector_restarted_alone_left(
    scene: Scene, raylet: Raylet
) -> None:
    raylet.listen()
    await scene.tick()
    await scene.end()  # the collector alone
    scene.restart()
    await scene.tick(60.0)
    raylet.be_killed()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    a_port_file(a_session(scene.root, OTHER), NODE_B, "gcs_server", at=STARTED.timestamp() + 600)
    await scene.tick(600.0)
    assert (scene.node_end().ended_at, scene.node_end().reason) == (died_at, RAYLET_KILLED)


async def test_a_death_that_the_bucket_did_not_take_is_told_again(
    scene: Scene, raylet: Raylet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raykeeper.collector.node_records.BEAT_SECONDS", 0.05)
    raylet.listen()
    await scene.tick()
    raylet.be_killed()
    scene.bucket.go_away()
    await scene.tick(1.0)
    died_at = scene.clock.now()
    scene.bucket.come_back()
    await scene.tick(10.0)
    assert scene.heartbeat().raylet_gone_at == died_at


async def test_a_graceful_end_says_what_was_left_behind(scene: Scene) -> None:
    await scene.tick()
    scene.clock.advance(100.0)
    missing = (MissingLog(path="raylet.out", offset=10, length=90),)
    assert await scene.end(LeftBehind(missing, missing_event_bytes=5))
    end = scene.node_end()
    assert (end.reason, end.is_complete, end.missing_logs) == ("terminated", False, missing)
    assert (end.missing_log_bytes, end.missing_event_bytes, end.ended_at) == (90, 5, scene.clock.now())
    listed = scene.bucket.record(catalog_key("end"), CatalogEnd)
    assert (listed.ended_at, listed.is_complete, listed.head_node_id) == (end.ended_at, False, NODE_A)


async def test_a_head_that_lived_for_a_second_has_a_start_a_heartbeat_and_an_end(scene: Scene) -> None:
    scene.facts = HeadFacts()
    await scene.end()
    assert scene.session_record().started_at == STARTED
    assert scene.heartbeat().beat_at <= scene.node_end().ended_at
    assert catalog_key("start") in scene.bucket.objects
    assert catalog_key("end") in scene.bucket.objects


async def test_an_end_that_the_bucket_does_not_take_ends_in_time(scene: Scene) -> None:
    await scene.tick()
    scene.bucket.go_away()
    assert not await scene.recorder.end("terminated", {}, scene.clock.steady() + 0.05)


async def test_a_worker_whose_raylet_was_replaced_gets_its_end(scene: Scene) -> None:
    scene.identity = replace(HEAD, role="worker")
    scene.restart()
    await scene.tick()
    a_port_file(scene.root / SESSION, NODE_B, at=STARTED.timestamp() + 3600)
    await scene.tick(3600.0)
    end = scene.node_end(NODE_A)
    assert (end.reason, end.is_complete) == ("replaced", True)
    assert end.ended_at == datetime.fromtimestamp(STARTED.timestamp() + 3600, UTC)
    assert scene.heartbeat(NODE_B).beat_at == scene.clock.now()
    assert end_record_key(session_id(), NODE_B) not in scene.bucket.objects


async def test_the_end_of_a_replaced_node_waits_for_its_data(scene: Scene) -> None:
    await scene.tick()
    a_port_file(scene.root / SESSION, NODE_B, at=STARTED.timestamp() + 60)
    scene.left = LeftBehind(missing_event_bytes=5)
    await scene.tick(60.0)
    assert end_record_key(session_id(), NODE_A) not in scene.bucket.objects
    await scene.tick(REPLACED_END_SECONDS)
    assert (scene.node_end().is_complete, scene.node_end().missing_event_bytes) == (False, 5)


async def test_a_new_session_in_the_same_pod_ends_the_one_before(scene: Scene) -> None:
    await scene.tick()
    a_port_file(a_session(scene.root, OTHER), NODE_B, "gcs_server", at=STARTED.timestamp() + 17_402)
    await scene.tick(18_000.0)
    assert scene.node_end().reason == "replaced"
    assert scene.bucket.record(catalog_key("end"), CatalogEnd).reason == "replaced"
    assert scene.session_record(OTHER).head_node_id == NODE_B
    assert catalog_key("end", OTHER, date(2026, 11, 16)) not in scene.bucket.objects


async def test_a_restarted_collector_changes_no_start_and_no_end(scene: Scene) -> None:
    await scene.tick()
    a_port_file(scene.root / SESSION, NODE_B, at=STARTED.timestamp() + 60)
    await scene.tick(60.0)
    before = {key: data for key, data in scene.bucket.objects.items() if "node.json" not in key}
    scene.clock.advance(7200.0)
    scene.facts = replace(KNOWN, utc_offset=timedelta(hours=5))  # would give another start
    scene.restart()
    await scene.tick()
    assert {key: data for key, data in scene.bucket.objects.items() if "node.json" not in key} == before


async def test_what_was_learned_of_an_earlier_session_stays_after_a_restart(scene: Scene) -> None:
    scene.facts = HeadFacts(utc_offset=timedelta(0))
    await scene.tick()
    await scene.tick(10.0)
    scene.facts = KNOWN
    await scene.tick(1.0)
    a_port_file(a_session(scene.root, OTHER), NODE_B, "gcs_server", at=STARTED.timestamp() + 17_402)
    scene.facts = HeadFacts()
    scene.restart()
    await scene.tick(18_000.0)
    assert scene.bucket.record(catalog_key("start"), CatalogStart).ray_version == "2.60.0"


async def test_a_session_that_goes_on_with_another_head_has_not_ended(scene: Scene, tmp_path: Path) -> None:
    """GCS fault tolerance: a new pod, an empty disk, the same session name."""
    await scene.tick()
    await scene.end()
    first = scene.session_record()
    folder = tmp_path / "new pod"
    a_port_file(a_session(folder), NODE_B, "gcs_server", at=STARTED.timestamp() + 9_000)
    later = Scene(folder, bucket=scene.bucket, clock=scene.clock)
    later.facts = HeadFacts("2.60.0")
    await later.tick(9_005.0)
    assert scene.session_record() == first
    start = scene.bucket.record(catalog_key("start"), CatalogStart)
    end = scene.bucket.record(catalog_key("end"), CatalogEnd)
    assert (start.started_at, start.head_node_id, end.head_node_id) == (STARTED, NODE_B, NODE_A)
    assert later.heartbeat(NODE_B).beat_at > end.ended_at


async def test_a_node_whose_raylet_listens_has_not_ended_whatever_session_is_called_the_latest(
    scene: Scene, raylet: Raylet
) -> None:
    raylet.listen()
    await scene.tick()
    first = scene.heartbeat()
    a_port_file(a_session(scene.root, OTHER), NODE_B, "gcs_server")
    await scene.tick(REPLACED_END_SECONDS + 1)
    assert scene.heartbeat().beat_at > first.beat_at
    assert end_record_key(session_id(), NODE_A) not in scene.bucket.objects
    raylet.end()
    await scene.tick()
    await scene.tick(REPLACED_END_SECONDS + 1)
    assert scene.node_end().reason == "replaced"
