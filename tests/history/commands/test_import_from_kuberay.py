"""`raykeeper import` from KubeRay's buckets: all of it arrives, once, however often it is interrupted."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.history.commands.import_sessions.from_bucket import BucketImport
from raykeeper.history.commands.import_sessions.writing import FRAME_BYTES, PACK_BYTES, Tally
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import SessionId
from raykeeper.storage.errors import StoreUnavailable
from raykeeper.storage.store import ObjectStore
from support.ingest_scene import HEAD, WORKER_NODE, finished_task, local_store, read_rows
from support.kuberay_buckets import OF_A_JOB, OF_A_SERVICE, OPENED_NS, PLAIN, KubeRayBucket, to_event_file
from support.stored_sessions import StoredSession

LOGS = {
    "worker-1.out": b"a line\n" * (FRAME_BYTES // 5),
    "old/worker-2.err": b"",
    "events/event_GCS.log": b"x\n" * 10,
}
LARGE = {"gcs_server.out": b"0123456789abcde\n" * ((PACK_BYTES + FRAME_BYTES + 48) // 16)}
TASKS = 30


async def a_bucket(folder: Path) -> ObjectStore:
    """Two sessions that ended, in all forms that events have."""
    store = local_store(folder)
    for place, form in ((PLAIN, "lines"), (OF_A_JOB, "gzip")):
        bucket = KubeRayBucket(store, place, form)  # type: ignore[arg-type]  # mypy takes the two for any text
        await bucket.put_marker()
        for node, number in ((HEAD, 0), (WORKER_NODE, 1)):
            events = [event for task in range(number, TASKS, 2) for event in finished_task(task)]
            await bucket.put_events(node, events, opened_ns=OPENED_NS + number)
        await bucket.put_logs(HEAD, LARGE | LOGS)
        await bucket.put_logs(WORKER_NODE, LOGS)
        await bucket.put_answer("/api/jobs/", [{"job_id": "01000000"}])
    return store


async def imported(
    source: ObjectStore, target: ObjectStore, only: SessionId | None = None, *, is_dry_run: bool = False
) -> Tally:
    return await BucketImport(source, target, SystemClock(), lambda _: None, is_dry_run=is_dry_run).run(only)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def of_session(folder: Path, session: SessionId) -> dict[str, bytes]:
    return {key: data for key, data in files_of(folder).items() if key.startswith(session.prefix)}


@asynccontextmanager
async def opened(store: ObjectStore, session: SessionId, folder: Path) -> AsyncIterator[Session]:
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder, patience=timedelta(minutes=1)))
    try:
        yield await sessions.open(session)
    finally:
        await sessions.close()


async def test_an_imported_session_says_what_the_bucket_said(tmp_path: Path) -> None:
    source, target = await a_bucket(tmp_path / "from"), local_store(tmp_path / "to")
    tally = await imported(source, target)
    assert (tally.sessions, tally.unreadable) == (2, [])
    overlay = KubeRayOverlay(source, SystemClock())
    async with (
        opened(overlay, OF_A_JOB.session, tmp_path / "a") as before,
        opened(target, OF_A_JOB.session, tmp_path / "b") as after,
    ):
        for table in ("tasks", "jobs"):
            await before.tables.fetch([table])
            await after.tables.fetch([table])
            assert read_rows(after.tables[table]) == read_rows(before.tables[table])
        assert after.tasks == TASKS
        assert after.ended_at == before.ended_at
        assert after.record == before.record
        assert after.polled.keys() == before.polled.keys() == {"/api/jobs/"}
    stored = StoredSession(tmp_path / "to", OF_A_JOB.session)
    assert stored.logs(HEAD) == LARGE | LOGS
    assert stored.logs(WORKER_NODE) == LOGS


async def test_an_imported_session_is_listed_as_ended(tmp_path: Path) -> None:
    source, target = await a_bucket(tmp_path / "from"), local_store(tmp_path / "to")
    await imported(source, target)
    clock = SystemClock()
    page = await Catalog(target, clock).page(10)
    assert {entry.id for entry in page.entries} == {PLAIN.session, OF_A_JOB.session}
    assert {entry.start.owner_name for entry in page.entries} == {"", "nightly"}
    heartbeats = Heartbeats(target, clock, StoreClock(target, clock))
    assert (await heartbeats.state(PLAIN.session)).state is State.ENDED


async def test_a_session_that_crashed_is_listed_as_crashed_after_its_import(tmp_path: Path) -> None:
    """KubeRay uploads a head's logs when it ends: this one left events alone, an hour ago."""
    source, target = local_store(tmp_path / "from"), local_store(tmp_path / "to")
    bucket = KubeRayBucket(source, PLAIN)
    await bucket.put_marker()
    await bucket.put_events(HEAD, finished_task(1))
    then = time.time() - 3600
    for file in (tmp_path / "from").rglob("*"):
        os.utime(file, (then, then))
    await imported(source, target)
    clock = SystemClock()
    assert (await Heartbeats(target, clock, StoreClock(target, clock)).state(PLAIN.session)).state is State.CRASHED
    async with opened(target, PLAIN.session, tmp_path / "cache") as after:
        assert after.ended_at is not None
        assert abs(after.ended_at.timestamp() - then) < 1


async def test_importing_twice_is_importing_once(tmp_path: Path) -> None:
    source, target = await a_bucket(tmp_path / "from"), local_store(tmp_path / "to")
    first = await imported(source, target)
    once = files_of(tmp_path / "to")
    second = await imported(source, target)
    assert files_of(tmp_path / "to") == once
    assert (second.objects, second.there) == (0, first.objects)


class FailingStore:
    """A store that breaks at its n-th write."""

    def __init__(self, store: ObjectStore, writes: int) -> None:
        self._store = store
        self._left = writes

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def put(self, key: str, data: bytes) -> None:
        if self._left == 0:
            raise StoreUnavailable("store", key, "broken")
        self._left -= 1
        await self._store.put(key, data)


async def test_an_import_that_broke_anywhere_is_completed_by_the_next(tmp_path: Path) -> None:
    source = await a_bucket(tmp_path / "from")
    whole = await imported(source, local_store(tmp_path / "whole"))
    for writes in range(0, whole.objects, 3):
        target = local_store(tmp_path / f"to-{writes}")
        with pytest.raises(StoreUnavailable):
            await imported(source, FailingStore(target, writes))  # type: ignore[arg-type]  # a store in all that is used
        for entry in (await Catalog(target, SystemClock()).page(10)).entries:
            assert of_session(tmp_path / f"to-{writes}", entry.id) == of_session(tmp_path / "whole", entry.id)
        await imported(source, target)
        assert files_of(tmp_path / f"to-{writes}") == files_of(tmp_path / "whole"), writes


async def test_what_cannot_be_read_is_named_and_stays_a_gap(tmp_path: Path) -> None:
    source, target = local_store(tmp_path / "from"), local_store(tmp_path / "to")
    bucket = KubeRayBucket(source, PLAIN, "gzip")
    torn = f"{PLAIN.prefix}{HEAD}/node_events/{HEAD}-2026-11-15-20-{OPENED_NS}.jsonl.gz"
    await source.put(torn, to_event_file(finished_task(1), "gzip")[:-20])
    await bucket.put_logs(HEAD, {"gcs_server.out": b"over\n"})
    tally = await imported(source, target)
    assert [line.partition(":")[0] for line in tally.unreadable] == [torn]
    async with opened(target, PLAIN.session, tmp_path / "cache") as session:
        assert len(session.gaps) == 1


async def test_a_session_that_runs_is_left_out_until_it_ended(tmp_path: Path) -> None:
    source, target = local_store(tmp_path / "from"), local_store(tmp_path / "to")
    bucket = KubeRayBucket(source, OF_A_SERVICE)
    await bucket.put_events(HEAD, finished_task(1))
    assert (await imported(source, target)).running == 1
    assert files_of(tmp_path / "to") == {}
    await bucket.put_logs(HEAD, {"gcs_server.out": b"over\n"})
    assert (await imported(source, target)).sessions == 1


async def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    source, target = await a_bucket(tmp_path / "from"), local_store(tmp_path / "to")
    dry = await imported(source, target, is_dry_run=True)
    assert files_of(tmp_path / "to") == {}
    assert dry.objects == (await imported(source, target)).objects


async def test_one_session_is_imported_alone_and_into_its_own_bucket_too(tmp_path: Path) -> None:
    source = await a_bucket(tmp_path / "from")
    tally = await imported(source, source, OF_A_JOB.session)
    assert tally.sessions == 1
    page = await Catalog(source, SystemClock()).page(10)
    assert [entry.id for entry in page.entries] == [OF_A_JOB.session]
    overlay = KubeRayOverlay(source, SystemClock())
    assert await overlay.contents(OF_A_JOB.session) is None
    assert await overlay.contents(PLAIN.session) is not None


def test_the_command_sums_up_and_an_unknown_session_is_named(tmp_path: Path) -> None:
    asyncio.run(a_bucket(tmp_path / "from"))
    command = ["import", str(tmp_path / "from"), "--store", f"file://{tmp_path / 'to'}"]
    outcome = CliRunner().invoke(app, [*command, "--session", str(PLAIN.session)])
    assert outcome.exit_code == 0, outcome.output
    assert "1 sessions: " in outcome.output
    unknown = CliRunner().invoke(app, [*command, "--session", "a/b/c"])
    assert isinstance(unknown.exception, Misconfigured)
