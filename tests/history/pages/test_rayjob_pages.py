"""A RayJob is found by its name: on the way to its session, and where there never was one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from raykeeper.history.store.unstarted_rayjobs import UnstartedRayJobs
from raykeeper.layout.keys import ClusterId, RayJobId
from raykeeper.layout.rayjobs import RayJobRecord, RayJobState
from raykeeper.layout.records import encode_record
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.clocks import ManualClock
from support.observer_scene import put_session_of
from support.whole_history import built_server

AT = datetime(2026, 11, 15, 19, tzinfo=UTC)
CLUSTER = ClusterId("team-a", "nightly-aaaaa", "c-1")
TIMED_OUT = RayJobState(at=AT, deployment_status="Failed", reason="DeadlineExceeded", message="30 s", job_id="x-1")
MISTYPED = RayJobState(
    at=AT, deployment_status="ValidationFailed", reason="ValidationFailed", message="spec.entrypoint is missing"
)
BORROWING = RayJobState(
    at=AT, deployment_status="Initializing", waits_for=f"RayClusterNotFound: there is no RayCluster {CLUSTER.cluster}"
)
WAITING = RayJobState(at=AT, deployment_status="Initializing", waits_for="QuotaExceeded: <b>no cpu</b>")


async def put_rayjob(store: ObjectStore, name: str, state: RayJobState, *clusters: str, **parts: Any) -> None:
    id_ = RayJobId("team-a", name, f"uid-{name}")
    record: dict[str, Any] = {"namespace": "team-a", "name": name, "uid": id_.uid, "clusters": clusters, **parts}
    for cluster in clusters:
        await store.put(id_.cluster_key(cluster), b"{}")
    await store.put(id_.key, encode_record(RayJobRecord(**record, states=(state,), created_at=AT)))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[ASGIApp]:
    store = open_store(parse_store_url(f"file://{tmp_path}/store", {}))
    await put_session_of(store, CLUSTER)
    state = RayJobState(at=AT, deployment_status="Failed", reason="DeadlineExceeded", cluster=CLUSTER.cluster)
    await put_rayjob(store, "nightly", state, CLUSTER.cluster)
    await put_rayjob(store, "waiting", WAITING)
    await put_rayjob(store, "timed-out", TIMED_OUT, "timed-out-bbbbb")
    await put_rayjob(store, "mistyped", MISTYPED)
    await put_rayjob(store, "expired", RayJobState(at=AT, deployment_status="Complete"), "expired-ccccc")
    await put_rayjob(store, "borrowing", BORROWING, CLUSTER.cluster, is_on_selected_cluster=True)
    async with built_server(tmp_path / "store", tmp_path / "cache") as built:
        yield built


async def test_a_rayjob_leads_to_its_session_and_its_job_page_says_why_it_has_no_job(app: ASGIApp) -> None:
    found = await ask(app, "/rayjobs/team-a/nightly")
    assert found.status == 302
    path = found.headers["location"]
    assert path.startswith("/s/team-a/nightly-aaaaa/session_")
    assert path.endswith("/job/nightly")
    page = await ask(app, path)
    assert page.status == 200
    assert "ran longer than its activeDeadlineSeconds" in page.text
    report = await ask(app, path.replace("/job/", "/report/"))
    assert "ran longer than its activeDeadlineSeconds" in report.text
    answer = await ask(app, "/api/keeper/v1/rayjobs/team-a/nightly/report")
    assert answer.body["root_cause"]["rule"] == "rayjob_deadline"


async def test_a_rayjob_without_a_session_says_why(app: ASGIApp) -> None:
    waiting = await ask(app, "/rayjobs/team-a/waiting")
    assert (waiting.status, "QuotaExceeded" in waiting.text) == (200, True)
    assert "<b>no cpu" not in waiting.text
    timed_out = await ask(app, "/rayjobs/team-a/timed-out")
    assert 'href="/clusters/team-a/timed-out-bbbbb"' in timed_out.text
    answer = await ask(app, "/api/keeper/v1/rayjobs/team-a/timed-out/report")
    assert (answer.body["outcome"], answer.body["session"]) == ("failed", "none")


async def test_the_start_page_lists_rayjobs_that_never_had_a_cluster_with_the_cause(app: ASGIApp) -> None:
    answer = (await ask(app, "/api/keeper/v1/rayjobs/unstarted")).body
    causes = {one["rayjob"]: (one["state"], one["cause"]) for one in answer["rayjobs"]}
    assert causes == {
        "waiting": ("Initializing", "RayJob waiting waits: QuotaExceeded: <b>no cpu</b>"),
        "timed-out": ("Failed", "RayJob timed-out ran longer than its activeDeadlineSeconds"),
        "mistyped": ("ValidationFailed", "RayJob mistyped is not valid: spec.entrypoint is missing"),
        "borrowing": (
            "Initializing",
            "RayJob borrowing waits: RayClusterNotFound: there is no RayCluster nightly-aaaaa",
        ),
    }
    assert answer["is_complete"]
    page = (await ask(app, "/")).text
    assert "Never started" in page
    assert 'href="/rayjobs/team-a/mistyped"' in page
    assert "is not valid: spec.entrypoint is missing" in page
    assert "<b>no cpu" not in page
    assert 'href="/rayjobs/team-a/nightly"' not in page
    assert 'href="/rayjobs/team-a/expired"' not in page


async def test_more_rayjobs_than_one_look_goes_through_are_said_to_be_missing(tmp_path: Path) -> None:
    store = open_store(parse_store_url(f"file://{tmp_path}/store", {}))
    for number in range(4):
        await put_rayjob(store, f"waiting-{number}", WAITING)
    clock = ManualClock()
    some = await UnstartedRayJobs(store, clock, most=3).known_within(10)
    assert (some.count, some.is_complete) == (3, False)
    rayjobs = UnstartedRayJobs(store, clock)
    assert (await rayjobs.known_within(10)).count == 4
    running = RayJobState(at=AT, deployment_status="Running")
    await put_rayjob(store, "waiting-0", running, "waiting-0-abcde")
    assert (await rayjobs.known_within(10)).count == 4, "a look is believed for a minute"
    clock.advance(61)
    known = await rayjobs.known_within(10)
    assert (known.count, known.is_complete) == (3, True)


async def test_a_rayjob_that_nobody_knows_is_not_found(app: ASGIApp) -> None:
    assert (await ask(app, "/rayjobs/team-a/nobody")).status == 404
    assert (await ask(app, "/api/keeper/v1/rayjobs/team-a/nobody/report")).status == 404
