"""A bucket of KubeRay 1.7 opens without conversion, and says what the same run says in our layout."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from raykeeper.clock import SystemClock
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import SessionMissing, Sessions, SessionsSettings
from raykeeper.history.store.kuberay.keys import KubeRayPlace
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.layout.keys import EventSegmentKey, SessionId
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.clocks import ManualClock
from support.ingest_scene import finished_task, local_store, read_rows
from support.kuberay_buckets import OF_A_JOB, OF_A_SERVICE, OPENED_NS, PLACES, PLAIN, EventForm, KubeRayBucket
from support.raycapture import ASKED_AT, HEAD, NODES, WORKER, RayCapture, put_into
from support.whole_history import built_server

PLACEMENT_GROUPS = "/api/v0/placement_groups?detail=1&limit=10000"
SERVE = "/api/serve/applications/"
GCS_LOG = "gcs_server.out"
ENTITIES = ("tasks", "actors", "jobs", "nodes", "workers")


async def fill(bucket: KubeRayBucket, capture: RayCapture) -> None:
    """The recorded run as KubeRay's collectors leave it while it runs: logs come with a graceful end."""
    for number, node in enumerate(NODES):
        events = capture.events(node, ASKED_AT["final"])
        await bucket.put_events(node.node_id, events, opened_ns=OPENED_NS + number * 10**9)
    answers = {recorded.path: recorded.body for recorded in capture.requests("final")}
    for path in (PLACEMENT_GROUPS, SERVE, "/timezone", "/api/v0/cluster_metadata"):
        await bucket.put_answer(path, answers[path])


@asynccontextmanager
async def opened(store: ObjectStore, session: SessionId, folder: Path) -> AsyncIterator[Session]:
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder, patience=timedelta(minutes=1)))
    try:
        yield await sessions.open(session)
    finally:
        await sessions.close()


async def rows(session: Session, table: str) -> list[dict[str, Any]]:
    """JSON in them is compared by value: KubeRay's collector writes the keys in another order."""
    await session.tables.fetch([table])
    found = [{name: by_value(value) for name, value in row.items()} for row in read_rows(session.tables[table])]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def by_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: by_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [by_value(item) for item in value]
    is_json = isinstance(value, str) and value[:1] + value[-1:] in ("{}", "[]")
    return json.loads(value) if is_json else value


def url_of(place: KubeRayPlace) -> str:
    id_ = place.session
    return f"/s/{id_.namespace}/{id_.cluster}/{id_.session}"


@pytest.mark.parametrize(("place", "form"), [(PLAIN, "lines"), (OF_A_JOB, "gzip"), (OF_A_SERVICE, "array")])
async def test_tables_of_a_kuberay_bucket_are_those_of_our_layout(
    raycapture: RayCapture, tmp_path: Path, place: KubeRayPlace, form: EventForm
) -> None:
    ours, theirs = local_store(tmp_path / "ours"), local_store(tmp_path / "theirs")
    await put_into(ours, raycapture, "final", place.session)
    bucket = KubeRayBucket(theirs, place, form)
    await bucket.put_marker()
    await fill(bucket, raycapture)
    overlay = KubeRayOverlay(theirs, SystemClock())
    async with (
        opened(ours, place.session, tmp_path / "a") as expected,
        opened(overlay, place.session, tmp_path / "b") as found,
    ):
        for table in ENTITIES:
            pairs = zip(await rows(found, table), await rows(expected, table), strict=True)
            assert [pair for pair in pairs if pair[0] != pair[1]] == [], table
        assert found.tasks == expected.tasks > 0
        assert found.gaps == ()
        assert found.record is not None
        assert (found.record.owner_kind, found.record.owner_name) == (place.owner_kind, place.owner)
        assert found.record.head_node_id == HEAD.node_id
        for path in (PLACEMENT_GROUPS, SERVE, "/timezone"):
            assert json.loads(bytes(found.polled[path].body)) == json.loads(bytes(expected.polled[path].body))


async def test_a_kuberay_bucket_is_served_like_any_other(raycapture: RayCapture, tmp_path: Path) -> None:
    store = local_store(tmp_path / "bucket")
    for place in PLACES:
        bucket = KubeRayBucket(store, place, "gzip")
        await bucket.put_marker()
        await fill(bucket, raycapture)
        await bucket.put_logs(HEAD.node_id, {GCS_LOG: raycapture.log_files(HEAD)[GCS_LOG]})
    await KubeRayBucket(store, PLAIN).put_logs(WORKER.node_id, raycapture.log_files(WORKER))
    async with built_server(tmp_path / "bucket", tmp_path) as app:
        page = await ask(app, "/sessions?state=ended")
        assert page.text.count('<td class="outcome">') == 3
        assert all(f"{url_of(place)}/" in page.text for place in PLACES)
        owners = {(row["name"], row.get("ownerKind")) for row in (await ask(app, "/clusters")).body}
        assert owners == {(place.session.cluster, place.owner_kind.lower() or None) for place in PLACES}
        tasks = await ask(app, f"{url_of(OF_A_JOB)}/api/v0/tasks?limit=10000&detail=1")
        assert tasks.status == 200
        assert tasks.body["data"]["result"]["total"] > 100
        assert (await ask(app, f"{url_of(OF_A_SERVICE)}{SERVE}")).body["applications"]
        curves = (await ask(app, f"{url_of(PLAIN)}/api/keeper/v1/curves")).body
        assert (curves["source"], curves["curves"]) == ("none", [])
        assert "no resource samples" in curves["notes"][0]
        latest = await ask(app, f"/s/golden/{OF_A_JOB.session.cluster}/latest/")
        assert latest.headers["location"] == f"{url_of(OF_A_JOB)}/"
        await same_logs(app, raycapture)


async def same_logs(app: ASGIApp, capture: RayCapture) -> None:
    """Every file of the worker is there byte for byte, and its end without the rest."""
    for path, data in capture.log_files(WORKER).items():
        query = f"node_id={WORKER.node_id}&filename={path}"
        whole = await ask(app, f"{url_of(PLAIN)}/api/v0/logs/file?{query}&lines=-1&format=leading_1")
        assert whole.status == 200, path
        assert data.decode(errors="replace") in whole.content.decode(errors="replace"), path
    tail = await ask(app, f"{url_of(PLAIN)}/api/v0/logs/file?node_id={HEAD.node_id}&filename={GCS_LOG}&lines=2")
    last = capture.log_files(HEAD)[GCS_LOG].splitlines(keepends=True)[-2:]
    assert b"".join(last).decode() in tail.text


async def test_a_session_without_a_marker_is_found_when_its_path_is_asked(
    raycapture: RayCapture, tmp_path: Path
) -> None:
    for place in (PLAIN, OF_A_JOB):
        await fill(KubeRayBucket(local_store(tmp_path / "bucket"), place), raycapture)
    async with built_server(tmp_path / "bucket", tmp_path) as app:
        for place in (PLAIN, OF_A_JOB):
            assert (await ask(app, f"{url_of(place)}/api/v0/tasks?limit=1")).status == 200
        nowhere = url_of(PLAIN).replace("golden", "silver")
        assert (await ask(app, f"{nowhere}/api/v0/tasks?limit=1")).status == 404


async def test_a_session_that_is_in_our_layout_too_is_read_from_there_alone(
    raycapture: RayCapture, tmp_path: Path
) -> None:
    store = local_store(tmp_path / "bucket")
    bucket = KubeRayBucket(store, PLAIN)
    await bucket.put_marker()
    await bucket.put_events("cc" * 28, raycapture.events(WORKER, ASKED_AT["final"]))
    await put_into(store, raycapture, "final", PLAIN.session)
    overlay = KubeRayOverlay(store, SystemClock())
    assert [stat async for stat in overlay.list(PLAIN.session.prefix)] == [
        stat async for stat in store.list(PLAIN.session.prefix)
    ]
    day = [stat.key async for stat in overlay.list("v1/catalog/2026-11-15/")]
    assert len(day) == 1


async def test_a_damaged_event_file_is_a_gap_and_its_first_lines_count(raycapture: RayCapture, tmp_path: Path) -> None:
    store = local_store(tmp_path / "bucket")
    await fill(KubeRayBucket(store, PLAIN, "gzip"), raycapture)
    files = [stat async for stat in store.list(f"{PLAIN.prefix}{HEAD.node_id}/job_events/")]
    largest = max(files, key=lambda stat: stat.size)
    await store.put(largest.key, (await store.get(largest.key))[: largest.size // 2])
    async with opened(KubeRayOverlay(store, SystemClock()), PLAIN.session, tmp_path / "cache") as found:
        assert len(found.gaps) == 1
        assert len(await rows(found, "tasks")) > 10


async def test_what_kuberay_uploads_while_a_session_runs_is_seen_within_seconds(tmp_path: Path) -> None:
    store, clock = local_store(tmp_path / "bucket"), ManualClock(now=datetime.now(UTC))
    overlay, bucket = KubeRayOverlay(store, clock), KubeRayBucket(store, PLAIN)
    await bucket.put_marker()
    await bucket.put_events(HEAD.node_id, finished_task(1))
    prefix = EventSegmentKey.prefix(PLAIN.session)
    assert len([stat async for stat in overlay.list(prefix)]) == 1
    await bucket.put_events(HEAD.node_id, finished_task(2), opened_ns=OPENED_NS + 300 * 10**9)
    clock.advance(6)
    first, second = [stat.key async for stat in overlay.list(prefix)]
    assert [stat.key async for stat in overlay.list(prefix, after=first)] == [second]


async def test_sessions_that_were_forgotten_are_listed_again_when_they_are_asked_for(tmp_path: Path) -> None:
    store = local_store(tmp_path / "bucket")
    for place in PLACES:
        await KubeRayBucket(store, place).put_events(HEAD.node_id, finished_task(1))
    overlay = KubeRayOverlay(store, SystemClock(), max_objects=1)
    for place in (*PLACES, *PLACES):
        [segment] = [stat.key async for stat in overlay.list(EventSegmentKey.prefix(place.session))]
        assert await overlay.get(segment)


async def test_a_session_of_which_nothing_is_stored_is_missing(tmp_path: Path) -> None:
    store = local_store(tmp_path / "bucket")
    await KubeRayBucket(store, OF_A_JOB).put_marker()
    overlay = KubeRayOverlay(store, SystemClock())
    with pytest.raises(SessionMissing):
        async with opened(overlay, PLAIN.session, tmp_path / "cache"):
            pass
