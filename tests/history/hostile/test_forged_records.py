"""Records and answers that somebody made up: they cost their own session, and no list and nobody else's pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raykeeper.history.query.context import SessionContext
from raykeeper.history.store import catalog
from raykeeper.history.store.catalog import Summaries
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.keys import CatalogKey, PolledKey, SessionId, node_record_key, session_record_key
from raykeeper.layout.polled import encode_polled
from raykeeper.layout.records import CatalogStart, PolledAnswer, SessionRecord, encode_record
from raykeeper.layout.summaries import FailureSummary, JobSummary, SessionSummary
from support.asking import ask
from support.history_scene import (
    HEAD_ID,
    SESSION,
    STARTED_AT,
    Scene,
    a_scene,
    opened_plainly,
    put_beat,
    put_session,
    session_url,
)

HOSTILE = SessionId("attacker", "c", "session_2026-11-15_20-00-00_000000_6")
LISTS = ("/sessions", "/", "/jobs", "/clusters", "/api/keeper/v1/sessions", "/api/keeper/v1/jobs")


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    await put_session(scene.store, HOSTILE)
    return scene


async def check_lists(scene: Scene) -> None:
    for path in LISTS:
        answer = await ask(scene.app, path)
        assert answer.status == 200, f"{path}: {answer.text[:200]}"
        assert SESSION.session in answer.text or "jobs" in path or path == "/"


@pytest.mark.parametrize(
    "numbers",
    [
        {"interval_seconds": 1e300},
        {"interval_seconds": -1e308},
        {"interval_seconds": 0},
        {"interval_seconds": 30, "clock_offset_seconds": 1e308},
        {"interval_seconds": 30, "delivery": {"oldest_unsent_seconds": 1e308}},
        {"interval_seconds": 30, "delivery": {"events_accepted": 10**300}},
        {"interval_seconds": 30, "delivery": {"lost_log_bytes": -(10**300)}},
        {"interval_seconds": 30, "started_at": "0001-01-01T00:00:00+14:00"},
    ],
    ids=str,
)
async def test_numbers_of_a_heartbeat_with_which_nothing_can_be_reckoned_cost_no_list(
    numbers: dict[str, Any], scene: Scene
) -> None:
    now = datetime.now(UTC).isoformat()
    beat = {"node_id": HEAD_ID, "role": "head", "started_at": now, "beat_at": now} | numbers
    text = msgspec.json.encode({name: value for name, value in beat.items() if name != "delivery"})[:-1]
    delivery = beat.get("delivery")
    if isinstance(delivery, dict):
        [(name, number)] = delivery.items()
        text += f',"delivery":{{"{name}":{number}}}'.encode()
    await scene.store.put(node_record_key(HOSTILE, HEAD_ID), text + b"}")
    await check_lists(scene)


ODD_JOBS: list[dict[str, Any]] = [
    {"job_id": {"a": 1}, "submission_id": "s", "status": "FAILED"},
    {"job_id": "1", "submission_id": ["l"], "status": "RUNNING"},
    {"job_id": "2", "status": 7},
    {"job_id": "3", "status": "FAILED", "start_time": "x", "end_time": -(10**18), "entrypoint": ["e"]},
    {"job_id": "4", "status": "FAILED", "start_time": 10**18, "metadata": [1], "message": {"a": 1}},
    {"job_id": "5", "status": "STOPPED", "type": "SUBMISSION", "driver_node_id": [], "runtime_env": "r"},
    {"job_id": "6", "status": "FAILED", "driver_exit_code": "z", "error_type": {}, "metadata": {"k": ["v"]}},
    {"job_id": "7", "status": "FAILED", "type": 5, "entrypoint": "e" * 100_000, "start_time": True},
]


async def test_jobs_of_odd_shapes_cost_no_list_and_no_page(scene: Scene) -> None:
    """A head's dashboard is whoever has its port: its words are on the page of all jobs."""
    answer = PolledAnswer(path="/api/jobs/", polled_at=STARTED_AT, status=200, body=raw(ODD_JOBS))
    await scene.store.put(PolledKey(HOSTILE, "/api/jobs/", 10**12).key, encode_polled(answer))
    await put_beat(scene.store, session=HOSTILE)
    scene.sessions.have_polled(HOSTILE, "/api/jobs/", ODD_JOBS)
    await check_lists(scene)
    for page in ("", "/report", "/api/jobs/", "/api/v0/jobs", *(f"/job/{job}" for job in "34567"), "/report/3"):
        status = (await ask(scene.app, session_url(HOSTILE) + page)).status
        assert status in (200, 307, 404), f"{page}: {status}"


async def test_a_summary_with_an_impossible_time_costs_no_list(scene: Scene) -> None:
    for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"):
        job = {"job_id": "1", "status": "FAILED", "started_at": time, "ended_at": time}
        summary = {"version": 3, "as_of": STARTED_AT.isoformat(), "jobs": [job]}
        await scene.store.put(CatalogKey(STARTED_AT.date(), HOSTILE, "summary").key, msgspec.json.encode(summary))
        await check_lists(scene)


A_FAILURE = {"fingerprint": "f", "title": "t", "rule": "r"}


@pytest.mark.parametrize(
    "too_much",
    [
        {"failures": [A_FAILURE] * 51},
        {"jobs": [{"status": "FAILED", "failures": [A_FAILURE] * 11}]},
        {"jobs": [{"status": "FAILED"}] * 1001},
        {"jobs": [{"status": "FAILED", "failure": "x" * 1001}]},
        {"jobs": [{"status": "FAILED", "metadata": {str(number): "" for number in range(101)}}]},
        {"failures": [A_FAILURE | {"count": 10**18 * 100}]},
    ],
    ids=["failures", "failures of a job", "jobs", "a text", "metadata", "a count"],
)
async def test_a_summary_beyond_its_bounds_is_none(too_much: dict[str, Any], scene: Scene) -> None:
    """Lists hold thousands of them: a bucket of large ones would take all memory."""
    summary = {"version": 5, "as_of": STARTED_AT.isoformat()} | too_much
    key = CatalogKey(STARTED_AT.date(), HOSTILE, "summary").key
    await scene.store.put(key, msgspec.json.encode(summary))
    entry = await scene.history.catalog.find(HOSTILE)
    assert entry
    assert await scene.history.catalog.summaries.find(entry) is None
    await check_lists(scene)


async def test_summaries_are_remembered_by_the_bytes_that_they_take(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_REMEMBERED_BYTES", 1 << 20)
    summaries = Summaries(scene.store)
    failures = tuple(FailureSummary(fingerprint=str(one), title="t" * 900, rule="r") for one in range(10))
    jobs = tuple(JobSummary(status="FAILED", failures=failures) for _ in range(30))
    for number in range(10):
        session = replace(HOSTILE, session=f"session_{number}")
        await put_session(scene.store, session)
        text = encode_record(SessionSummary(version=5, as_of=STARTED_AT, jobs=jobs))
        await scene.store.put(CatalogKey(STARTED_AT.date(), session, "summary").key, text)
    page = await scene.history.catalog.page(100)
    found = [await summaries.find(entry) for entry in page.entries]
    assert sum(one is not None for one in found) == 10
    known = [entry for entry in page.entries if entry.summary_written and summaries.is_known(entry)]
    assert 1 <= len(known) <= 4, "each is of 270 KB"


@pytest.mark.parametrize(
    "lie",
    [
        {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session},
        {"namespace": SESSION.namespace},
        {"started_at": STARTED_AT + timedelta(days=400)},
    ],
    ids=["another session", "another namespace", "another day"],
)
async def test_an_entry_that_does_not_fit_its_key_is_not_listed(lie: dict[str, Any], scene: Scene) -> None:
    true = {"namespace": HOSTILE.namespace, "cluster": HOSTILE.cluster, "session": HOSTILE.session}
    owner = {"owner_kind": "RayJob", "owner_name": "nightly"}
    entry = CatalogStart(**(true | {"started_at": STARTED_AT} | owner | lie))
    await scene.store.put(CatalogKey(STARTED_AT.date(), HOSTILE, "start").key, encode_record(entry))
    listed = (await ask(scene.app, "/api/keeper/v1/sessions")).body
    assert [one["cluster"] for one in listed["sessions"]] == [SESSION.cluster]
    assert "nightly" not in str(listed)
    assert await scene.history.catalog.newest_of_owner(SESSION.namespace, "rayjob", "nightly") is None


class Asked:
    """Whose facts were asked for."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str, str]] = []

    async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
        self.names.append((namespace, cluster, uid))
        return KubeFacts()


async def test_a_session_is_shown_what_kubernetes_said_of_its_own_cluster_alone(scene: Scene) -> None:
    record = SessionRecord(
        namespace=SESSION.namespace,
        cluster=SESSION.cluster,
        session=SESSION.session,
        started_at=STARTED_AT,
        recorded_at=STARTED_AT,
        cluster_uid="uid-of-the-victim",
    )
    await scene.store.put(session_record_key(HOSTILE), encode_record(record))
    assert await scene.history.catalog.find(HOSTILE) is None, "a record of another session is none"
    asked = Asked()
    opened = replace(opened_plainly(HOSTILE), record=record)
    await SessionContext(opened, scene.history.database, scene.history.logs, kubernetes=asked).kube_facts()
    assert asked.names == [(HOSTILE.namespace, HOSTILE.cluster, "uid-of-the-victim")]


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
