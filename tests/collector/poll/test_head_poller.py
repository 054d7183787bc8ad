"""The head poller, against a dashboard whose answers the test writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from bed.waiting import BUSY_FACTOR
from ray_head.memory_bucket import MemoryBucket
from ray_head.scripted_head import SESSION, ScriptedHead, as_json, as_text, in_turn, scripted, stalled
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.poll.living import living_actors
from raykeeper.collector.poll.poller import HeadPoller, PollSettings
from raykeeper.ray.dashboard import Dashboard, Limits
from support.clocks import ManualClock
from support.conditions import until

OTHER = "session_2026-11-16_01-00-00_000001_9"
STATISTICS = "/nodes?view=summary&nocache=1"


class DiskSessions:
    """What is known from the disk."""

    def __init__(self, current: str | None = None) -> None:
        self.current = current

    def current_session(self) -> str | None:
        return self.current


class Scene:
    """A poller, its dashboard, its bucket and its clock."""

    def __init__(self, address: str, head: ScriptedHead) -> None:
        self.head = head
        self.clock = ManualClock()
        self.bucket = MemoryBucket()
        self.disk = DiskSessions()
        self.metrics = CollectorMetrics(CollectorRegistry())
        dashboard = Dashboard(address, limits=Limits(answer_seconds=0.5, body_bytes=200_000))
        self.poller = HeadPoller(dashboard, self.disk, self.bucket, PollSettings("ns", "c"), self.clock, self.metrics)

    async def poll(self, seconds_later: float = 0.0) -> float:
        """One round and its objects in the bucket."""
        self.clock.advance(seconds_later)
        pause = await self.poller.poll()
        await self.poller.outbox.drain()
        return pause


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    head = ScriptedHead()
    async with scripted(head) as address:
        yield Scene(address, head)


async def test_answers_are_stored_byte_for_byte_under_the_session_that_gave_them(scene: Scene) -> None:
    body = b'[ {"job_id": "01000000", "type": "DRIVER", "start_time": 1794798713055} ]'
    scene.head.answer("/api/jobs/", as_text(body, content_type="application/json"))
    await scene.poll()
    [stored] = scene.bucket.polled("/api/jobs/", SESSION)
    assert (bytes(stored.body), stored.status, stored.polled_at) == (body, 200, scene.clock.now())


async def test_node_statistics_are_asked_past_rays_cache_and_stored_under_the_name_the_frontend_asks(
    scene: Scene,
) -> None:
    scene.head.say(STATISTICS, {"data": {"summary": []}})
    await scene.poll()
    assert len(scene.bucket.polled("/nodes?view=summary")) == 1


async def test_an_unchanged_answer_is_stored_once_and_a_changed_one_again(scene: Scene) -> None:
    for seconds, jobs in ((0.0, []), (30.0, []), (30.0, [{"job_id": "01000000"}]), (30.0, [])):
        scene.head.say("/api/jobs/", jobs)
        await scene.poll(seconds)
    bodies = [bytes(stored.body) for stored in scene.bucket.polled("/api/jobs/")]
    assert bodies == [b"[]", b'[{"job_id": "01000000"}]', b"[]"]


async def test_garbage_is_kept_as_text(scene: Scene) -> None:
    scene.head.answer("/timezone", as_text(b"\xff{", content_type="application/json"))
    await scene.poll()
    [stored] = scene.bucket.polled("/timezone")
    assert bytes(stored.body).decode() == '"\ufffd{"'


async def test_one_endpoint_that_fails_does_not_cost_the_others(scene: Scene) -> None:
    scene.head.say("/api/serve/applications/", "boom", status=500)
    scene.head.answer("/timezone", stalled)
    await scene.poll()
    assert scene.bucket.polled("/api/jobs/")
    assert not scene.bucket.polled("/api/serve/applications/")
    assert not scene.bucket.polled("/timezone")


async def test_an_answer_that_is_too_large_is_said_once_and_costs_the_others_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.head.answer("/api/serve/applications/", as_text(b"x" * 200_001))
    for _ in range(3):
        await scene.poll(1000.0)
    assert caplog.messages.count("answer too large to be kept") == 1
    assert scene.head.asked("/api/serve/applications/") == 3
    assert scene.bucket.polled("/api/jobs/")


async def test_a_new_session_is_asked_everything_again(scene: Scene) -> None:
    scene.head.say("/timezone", {"offset": "+00:00"})
    await scene.poll()
    scene.head.session = OTHER
    await scene.poll(1.0)
    for session in (SESSION, OTHER):
        assert len(scene.bucket.polled("/timezone", session)) == len(scene.bucket.polled("/api/jobs/", session)) == 1


async def test_answers_during_which_the_head_was_replaced_are_asked_for_again(scene: Scene) -> None:
    """Nobody knows which of the two heads gave them."""
    old, new = ({"ray_version": "2.60.0", "session_name": name} for name in (SESSION, OTHER))
    scene.head.answer("/api/version", in_turn(as_json(old), as_json(new)))
    await scene.poll()
    assert scene.bucket.objects == {}
    await scene.poll(1.0)
    assert scene.bucket.polled("/api/jobs/", OTHER)
    assert not scene.bucket.polled("/api/jobs/", SESSION)


async def test_a_dashboard_that_does_not_name_its_session_is_that_of_the_session_on_disk(scene: Scene) -> None:
    scene.head.say("/api/version", {"ray_version": "2.40.0"})
    await scene.poll()
    assert scene.bucket.objects == {}
    scene.disk.current = OTHER
    await scene.poll()
    assert scene.bucket.polled("/api/jobs/", OTHER)


async def test_a_refusal_is_retried_slowly_said_once_and_never_given_up(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    refused = as_text("no token", 401)
    fine = as_json({"ray_version": "2.60.0", "session_name": SESSION})
    scene.head.answer("/api/version", in_turn(refused, refused, refused, fine))
    with caplog.at_level(logging.INFO):
        pauses = [await scene.poll(60.0) for _ in range(3)]
        await scene.poll(60.0)
    assert pauses == [60.0, 60.0, 60.0]
    assert scene.bucket.polled("/api/jobs/", SESSION)
    assert [line for line in caplog.messages if "dashboard" in line] == [
        "dashboard refuses us: it is asked again every minute",
        "dashboard answers",
    ]


async def test_a_dead_dashboard_is_said_once_and_asked_nothing_but_whether_it_is_there(
    caplog: pytest.LogCaptureFixture, unused_tcp_port: int
) -> None:
    scene = Scene(f"http://127.0.0.1:{unused_tcp_port}", ScriptedHead())
    with caplog.at_level(logging.INFO):
        assert [await scene.poll(5.0) for _ in range(5)] == [5.0] * 5
    assert len(caplog.messages) == 1


async def test_what_the_head_says_about_itself_is_known(scene: Scene) -> None:
    scene.head.say("/api/v0/cluster_metadata", {"data": {"rayVersion": "2.60.0", "pythonVersion": "3.11.7"}})
    scene.head.say("/timezone", {"offset": "-03:30", "value": "America/St_Johns"})
    await scene.poll()
    facts = scene.poller.facts(SESSION)
    assert (facts.ray_version, facts.ray_commit, facts.python_version) == ("2.60.0", "b7f4", "3.11.7")
    assert facts.utc_offset == -timedelta(hours=3, minutes=30)
    assert scene.poller.facts(OTHER).ray_version == ""


async def test_datasets_of_listed_jobs_are_stored_and_empty_ones_are_not(scene: Scene) -> None:
    scene.head.say("/api/jobs/", [{"job_id": f"0{n}000000", "status": "RUNNING"} for n in (1, 2)])
    scene.head.say("/api/data/datasets/01000000", {"datasets": [{"dataset": "d"}]})
    scene.head.say("/api/data/datasets/02000000", {"datasets": []})
    await scene.poll()
    await scene.poll(1.0)
    assert len(scene.bucket.polled("/api/data/datasets/01000000")) == 1
    assert scene.head.asked("/api/data/datasets/02000000") == 1
    assert not scene.bucket.polled("/api/data/datasets/02000000")


@pytest.mark.parametrize(
    ("actor", "path", "body"),
    [
        ("_StatsActor", "/api/data/datasets/01000000", {"datasets": [{"dataset": "d"}]}),
        ("TrainStateActor", "/api/train/v2/runs/v1", {"train_runs": [{"id": "r"}]}),
    ],
)
async def test_a_library_is_asked_once_there_is_an_actor_that_knows(
    scene: Scene, actor: str, path: str, body: object
) -> None:
    scene.head.say("/api/jobs/", [{"job_id": "01000000", "status": "RUNNING"}])
    scene.head.say(path, body)
    for rows in ([], [{"actor_id": "a"}]):
        result = {"total": len(rows), "num_after_truncation": len(rows), "result": rows}
        scene.head.say(living_actors(actor), {"data": {"result": result}})
        for _ in range(10):
            await scene.poll(30.0)
        assert len(scene.bucket.polled(path)) == len(rows)
        assert (scene.head.asked(path) > 0) is bool(rows)


async def test_the_last_poll_stores_what_changed_since(scene: Scene) -> None:
    await scene.poll()
    scene.head.say("/api/jobs/", [{"job_id": "01000000", "status": "STOPPED"}])
    scene.clock.advance(1.0)
    assert await scene.poller.last_poll(scene.clock.steady() + 5.0)
    assert b"STOPPED" in bytes(scene.bucket.polled("/api/jobs/")[-1].body)


async def test_before_the_head_ends_all_is_asked_and_sent_although_nothing_is_due(scene: Scene) -> None:
    scene.head.say("/api/jobs/", [{"status": "RUNNING"}])
    running = asyncio.create_task(scene.poller.run())
    await until(lambda: len(scene.bucket.polled("/api/jobs/")) == 1)
    scene.head.say("/api/jobs/", [{"status": "SUCCEEDED"}])
    scene.clock.advance(1.0)
    assert await scene.poller.ask_all(5.0)
    assert [b"SUCCEEDED" in bytes(answer.body) for answer in scene.bucket.polled("/api/jobs/")] == [False, True]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_head_that_is_gone_before_it_can_be_asked_is_not_waited_for(scene: Scene, unused_tcp_port: int) -> None:
    gone = Dashboard(f"http://127.0.0.1:{unused_tcp_port}")
    poller = HeadPoller(gone, scene.disk, scene.bucket, PollSettings("ns", "c"), scene.clock, scene.metrics)
    assert not await poller.ask_all(5.0)


async def test_an_empty_serve_at_the_last_poll_is_no_news(scene: Scene) -> None:
    scene.head.say("/api/serve/applications/", {"applications": {"app": {}}})
    await scene.poll()
    scene.head.say("/api/serve/applications/", {"applications": {}})
    scene.clock.advance(1.0)
    await scene.poller.last_poll(scene.clock.steady() + 5.0)
    assert len(scene.bucket.polled("/api/serve/applications/")) == 1


async def test_the_last_poll_ends_in_time_and_stores_what_was_answered(scene: Scene) -> None:
    await scene.poll()
    scene.head.answer("/api/serve/applications/", stalled)
    scene.head.say("/api/jobs/", [{"job_id": "01000000"}])
    scene.clock.advance(1.0)
    async with asyncio.timeout(2.0 * BUSY_FACTOR):
        await scene.poller.last_poll(scene.clock.steady() + 2.0)
    assert len(scene.bucket.polled("/api/jobs/")) == 2


async def test_the_last_poll_of_a_dead_head_still_sends_what_waits(scene: Scene, unused_tcp_port: int) -> None:
    await scene.poller.poll()
    scene.head.answer("/api/version", as_text("gone", 403))
    assert await scene.poller.last_poll(scene.clock.steady() + 5.0)
    assert scene.bucket.polled("/api/jobs/")


async def test_an_outage_of_the_bucket_holds_answers_in_bounded_memory(scene: Scene) -> None:
    scene.poller.outbox._limit_bytes = 2_000
    scene.bucket.go_away()
    for number in range(100):
        scene.head.say("/api/jobs/", [{"job_id": f"{number:08x}", "status": "SUCCEEDED"}])
        scene.clock.advance(30.0)
        await scene.poller.poll()
        assert scene.poller.outbox.size <= 2_000
    scene.bucket.come_back()
    await scene.poller.outbox.drain()
    stored = scene.bucket.polled("/api/jobs/")
    assert b"00000063" in bytes(stored[-1].body)
    assert scene.poller.outbox.given_up == 100 - len(stored) + 1  # and the version, which was there first


async def test_it_runs_by_itself_until_cancelled(scene: Scene) -> None:
    running = asyncio.create_task(scene.poller.run())
    await until(lambda: scene.bucket.polled("/api/jobs/"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_questions_and_stored_answers_are_counted_by_outcome(scene: Scene) -> None:
    def polls(outcome: str) -> float:
        return scene.metrics.registry.get_sample_value("raykeeper_collector_polls_total", {"outcome": outcome}) or 0.0

    scene.head.answer("/api/jobs/", stalled)
    await scene.poll()
    stored = len(scene.bucket.objects)
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_polled_answers_total") == stored > 0
    assert (polls("answered"), polls("unanswered"), polls("refused")) == (stored, 1, 0)
    assert polls("error") > 0  # what was scripted for nobody is a 404
    scene.head.say("/api/version", {}, status=401)
    await scene.poll(seconds_later=60.0)
    assert polls("refused") == 1


@pytest.mark.parametrize("depth", [900, 99_000])
async def test_an_answer_nested_deeper_than_readers_go_costs_the_others_nothing(scene: Scene, depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    for path in (
        "/api/jobs/",
        "/api/serve/applications/",
        STATISTICS,
        "/timezone",
        "/api/v0/actors?detail=1&limit=10000",
    ):
        scene.head.answer(path, as_text(body, content_type="application/json"))
    scene.head.say("/api/cluster_status?format=1", {"fine": True})
    for _ in range(3):
        await scene.poll(60)
    [stored] = scene.bucket.polled("/api/cluster_status?format=1", SESSION)
    assert bytes(stored.body) == b'{"fine": true}'
    assert len(scene.bucket.polled("/api/jobs/", SESSION)) == 1
