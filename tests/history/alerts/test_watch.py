"""From a job that failed to what a receiver is told: in running and ended sessions, once, and of nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from history.alerts.listening import Listening, listening
from raykeeper.clock import SystemClock
from raykeeper.history.alert_receivers import AlertSettings, AlertTiming, Receiver, Secret
from raykeeper.history.alerts.marks import AlertMarks
from raykeeper.history.alerts.watch import AlertWatch, alerting
from raykeeper.history.program import open_history
from raykeeper.history.query.history import History
from raykeeper.history.settings import CacheSettings, HistorySettings, HistoryStoreSettings
from raykeeper.layout.alerts import session_alerts_prefix
from raykeeper.layout.keys import PolledKey, RayJobId, SessionId
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import PolledAnswer, encode_record
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.history_scene import local_store, put_beat, put_end, put_session

SECRET = "hunter2hunter2"
ERROR = f"ValueError: no row for password={SECRET}"
TIMING = AlertTiming(
    look_seconds=0.2, settle_seconds=0, cause_wait_seconds=0, retry_seconds=1, timeout_seconds=0.5, max_age_seconds=600
)


async def put_jobs(store: ObjectStore, session: SessionId, *jobs: dict[str, Any]) -> None:
    """What the dashboard said about the session's jobs."""
    now = datetime.now(UTC)
    answer = PolledAnswer(path="/api/jobs/", polled_at=now, status=200, body=msgspec.Raw(msgspec.json.encode(jobs)))
    await store.put(PolledKey(session, "/api/jobs/", int(now.timestamp() * 1000)).key, encode_polled(answer))


def a_job(name: str, status: str = "FAILED", *, ended: datetime | None = None) -> dict[str, Any]:
    at = int((ended or datetime.now(UTC)).timestamp() * 1000)
    logs = f'Traceback (most recent call last):\n  File "/app/{name}.py", line 7, in <module>\n    main()\n{ERROR}'
    message = "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
    over = {} if status == "RUNNING" else {"end_time": at}
    told = {"message": message + logs, "driver_exit_code": 1} if status == "FAILED" else {}
    entrypoint = f"DB_PASSWORD={SECRET} python {name}.py"
    job = {"submission_id": name, "job_id": None, "type": "SUBMISSION", "status": status, "entrypoint": entrypoint}
    return {**job, "start_time": at - 90_000, **over, **told}


async def put_running(store: ObjectStore, name: str, *jobs: dict[str, Any], namespace: str = "team-a") -> SessionId:
    session = SessionId(namespace, name, f"session_{name}")
    await put_session(store, session, started_at=datetime.now(UTC) - timedelta(minutes=5))
    await put_beat(store, session=session)
    await put_jobs(store, session, *jobs)
    return session


def settings_of(*receivers: Receiver, timing: AlertTiming = TIMING) -> AlertSettings:
    return AlertSettings(receivers, "https://history.example.com", timing)


async def switched_on(store: ObjectStore, receiver: str = "ops") -> None:
    """Have the receiver known: of what fails from now on it is told."""
    await AlertMarks(store, SystemClock()).since(receiver)


async def look_until(question: Callable[[], object], *watches: AlertWatch) -> None:
    """Have all of them look until it is so: what they know of the store may be some seconds old."""
    async with asyncio.timeout(60):
        while not question():
            await asyncio.gather(*(watch.look() for watch in watches))


@pytest.fixture
async def receiver() -> AsyncIterator[Listening]:
    async with listening() as one:
        yield one


@pytest.fixture
async def histories(tmp_path: Path) -> AsyncIterator[list[History]]:
    """Three servers over one store, each with a cache of its own."""
    store = parse_store_url(f"file://{tmp_path}/store", {})
    (tmp_path / "store").mkdir()
    async with AsyncExitStack() as stack:
        made = []
        for number in range(3):
            folder = tmp_path / f"cache-{number}"
            folder.mkdir()
            settings = HistorySettings(HistoryStoreSettings(), cache=CacheSettings(folder))
            made.append(await stack.enter_async_context(open_history(settings, store, folder)))
        yield made


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


async def test_three_servers_tell_once_of_every_failed_job_and_of_no_other(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    settings = settings_of(Receiver("ops", "webhook", receiver.url))
    watches = [AlertWatch(history, settings) for history in histories]
    await switched_on(store)
    jobs = [a_job(f"job-{number}") for number in range(5)]
    await put_running(store, "train", *jobs, a_job("fine", "SUCCEEDED"), a_job("busy", "RUNNING"))
    ended = await put_running(store, "etl", a_job("last"))
    await put_end(store, session=ended)
    await look_until(lambda: len(receiver.jobs) == 6, *watches)
    await asyncio.gather(*(watch.look() for watch in watches))
    assert receiver.jobs == dict.fromkeys([*(f"job-{number}" for number in range(5)), "last"], 1)
    assert len(set(receiver.keys)) == 6
    assert SECRET not in str(receiver.told)
    first = next(one for one in receiver.told if one["job"]["name"] == "job-0")
    assert first["link"] == "https://history.example.com/s/team-a/train/session_train/job/job-0"
    assert first["cause"]["headline"].startswith("ValueError: no row for password=<redacted>")
    assert first["job"]["duration_seconds"] == 90


async def test_a_session_that_crashed_with_a_job_at_work_is_told(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    watch = AlertWatch(histories[0], settings_of(Receiver("ops", "webhook", receiver.url)))
    await switched_on(store)
    ended = await put_running(store, "lost", a_job("unlucky", "RUNNING"))
    await watch.look()
    assert not receiver.told
    await put_end(store, session=ended)  # the cluster ended under it
    watch = AlertWatch(histories[1], settings_of(Receiver("ops", "webhook", receiver.url)))
    await look_until(lambda: receiver.told, watch)
    assert receiver.jobs == {"unlucky": 1}


async def test_what_failed_before_alerts_were_switched_on_is_not_told(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    await put_running(store, "old", a_job("old", ended=datetime.now(UTC) - timedelta(minutes=1)))
    watch = AlertWatch(histories[0], settings_of(Receiver("ops", "webhook", receiver.url)))
    await watch.look()
    await watch.look()
    assert not receiver.told


async def test_a_receiver_hears_of_its_own_namespaces_alone(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    mine = Receiver("mine", "webhook", receiver.url, namespaces=("team-a",))
    watch = AlertWatch(histories[0], settings_of(mine))
    await switched_on(store, "mine")
    await put_running(store, "a", a_job("of-a"), namespace="team-a")
    await put_running(store, "b", a_job("of-b"), namespace="team-b")
    await look_until(lambda: receiver.told, watch)
    await watch.look()
    assert receiver.jobs == {"of-a": 1}


async def test_what_is_not_taken_is_tried_again_and_redirects_are_not_followed(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    settings = settings_of(Receiver("ops", "webhook", receiver.url))
    watch = AlertWatch(histories[0], settings)
    await switched_on(store)
    receiver.status = 307
    await put_running(store, "train", a_job("late"))
    await look_until(lambda: receiver.refused, watch)
    await watch.look()
    assert (receiver.refused, receiver.told) == (1, []), "not before its pause is over"
    receiver.status = 200
    await look_until(lambda: receiver.told, AlertWatch(histories[1], settings))  # another server goes on
    await watch.look()
    assert receiver.jobs == {"late": 1}
    counted = generate_latest(histories[0].metrics.registry).decode()
    assert 'raykeeper_history_alert_attempts_failed_total{receiver="ops"} 1.0' in counted
    assert "raykeeper_history_alerts_sent_total{cause=" in generate_latest(histories[1].metrics.registry).decode()


async def test_what_nobody_takes_is_given_up_once_and_counted(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    timing = replace(TIMING, max_age_seconds=3)
    settings = settings_of(Receiver("ops", "webhook", receiver.url), timing=timing)
    watches = [AlertWatch(history, settings) for history in histories]
    await switched_on(store)
    receiver.status = 500
    await put_running(store, "train", a_job("nobody"))
    registries = [history.metrics.registry for history in histories]

    def given_up() -> float:
        name = "raykeeper_history_alerts_given_up_total"
        return sum(one.get_sample_value(name, {"receiver": "ops"}) or 0 for one in registries)

    await look_until(given_up, *watches)
    receiver.status = 200
    await asyncio.gather(*(watch.look() for watch in watches))
    assert given_up() == 1
    assert not receiver.told


async def test_a_server_that_is_replaced_finishes_what_is_on_its_way(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    settings = settings_of(Receiver("ops", "webhook", receiver.url), timing=replace(TIMING, timeout_seconds=5))
    await switched_on(store)
    receiver.seconds = 0.5
    session = await put_running(store, "train", a_job("one"))
    async with alerting(histories[0], settings):
        await asyncio.wait_for(receiver.begun.wait(), 60)
    [marks] = (await AlertMarks(store, SystemClock()).read(session_alerts_prefix(session))).values()
    assert (receiver.jobs, marks.is_over) == ({"one": 1}, True)


async def test_a_body_is_signed_and_carries_the_token(
    histories: list[History], store: ObjectStore, receiver: Listening, tmp_path: Path
) -> None:
    (tmp_path / "bearer").write_text("t0ken-of-the-receiver")
    (tmp_path / "signing").write_text("s1gning")
    bearer, signing = Secret(file=tmp_path / "bearer"), Secret(file=tmp_path / "signing")
    told = Receiver("ops", "webhook", receiver.url, bearer=bearer, signing=signing)
    watch = AlertWatch(histories[0], settings_of(told))
    await switched_on(store)
    await put_running(store, "train", a_job("one"))
    await look_until(lambda: receiver.told, watch)
    [headers] = receiver.headers
    assert headers["Authorization"] == "Bearer t0ken-of-the-receiver"
    assert headers["X-Raykeeper-Signature"].startswith("t=")


async def test_a_rayjob_that_failed_without_a_cluster_is_told(
    histories: list[History], store: ObjectStore, receiver: Listening
) -> None:
    watch = AlertWatch(histories[0], settings_of(Receiver("ops", "webhook", receiver.url)))
    await switched_on(store)
    now = datetime.now(UTC)
    state = RayJobState(
        at=now, deployment_status="Failed", reason="ValidationFailed", message="entrypoint must be set", ended_at=now
    )
    record = RayJobRecord(namespace="team-a", name="nightly", uid="u1", created_at=now, states=(state,))
    await store.put(RayJobId("team-a", "nightly", "u1").key, encode_record(record))
    await look_until(lambda: receiver.told, watch)
    await watch.look()
    [told] = receiver.told
    assert told["job"]["name"] == "nightly"
    assert told["session"] == "none"
    assert "entrypoint must be set" in str(told["cause"])
    assert told["link"].endswith("/rayjobs/team-a/nightly")
