"""Sessions are opened, followed while they run, and made final, by any replica, at once, and through crashes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.history.ingest import batches, table_builder
from raykeeper.history.ingest.follower import sweep_tables
from raykeeper.history.ingest.manifests import newest_manifest
from raykeeper.history.ingest.session import Session
from raykeeper.history.ingest.sessions import SessionMissing, Sessions, SessionsSettings
from raykeeper.history.ingest.worker import WorkerProcess
from raykeeper.history.query.database import Database
from raykeeper.layout.keys import LogIndexKey, SessionId, end_record_key, manifests_prefix
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.conditions import eventually, until
from support.ingest_scene import (
    HEAD,
    SESSION,
    WORKER_NODE,
    base64_id,
    definition,
    finished_task,
    lifecycle,
    local_store,
    put_records,
    put_segment,
    read_rows,
    task_id,
    worker_lifecycle,
)

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return local_store(tmp_path / "store")


@asynccontextmanager
async def replica(store: ObjectStore, folder: Path, clock: ManualClock | None = None) -> AsyncIterator[Sessions]:
    sessions = Sessions(store, clock or SystemClock(), SessionsSettings(folder, patience=timedelta(minutes=1)))
    try:
        yield sessions
    finally:
        await sessions.close()


async def opened_tasks(opened: Session) -> int:
    await opened.tables.fetch(["tasks"])
    return len(read_rows(opened.tables["tasks"]))


async def published(sessions: Sessions, store: ObjectStore, number: int) -> None:
    """Wait until a replica has published its tables."""

    async def is_there() -> bool:
        found = await newest_manifest(store, SESSION)
        return found is not None and found.number >= number

    await eventually(is_there)


async def ended_session(store: ObjectStore, segments: int = 3) -> None:
    for number in range(segments):
        await put_segment(store, number, finished_task(number), HEAD if number % 2 else WORKER_NODE)
    await put_records(store, NOW, is_ended=True)


async def test_a_session_that_is_not_there_is_missing(store: ObjectStore, tmp_path: Path) -> None:
    async with replica(store, tmp_path / "a") as sessions:
        with pytest.raises(SessionMissing, match="there is no session x/y/z"):
            await sessions.open(SessionId("x", "y", "z"))


async def test_an_ended_session_is_final_and_others_read_what_one_replica_made(
    store: ObjectStore, tmp_path: Path
) -> None:
    await ended_session(store)
    async with replica(store, tmp_path / "a") as first:
        opened = await first.open(SESSION)
        assert (opened.is_final, opened.tasks, opened.gaps) == (True, 3, ())
        assert opened.record is not None
        assert [node.node_id for node in opened.nodes] == [HEAD]
        await published(first, store, 1)
    async with replica(store, tmp_path / "b") as second:
        again = await second.open(SESSION)
        assert (await opened_tasks(again), again.is_final) == (3, True)
        assert not any((tmp_path / "b" / "work").glob("*/partial*"))


async def test_tables_are_queried_by_name_and_fetched_when_they_are_needed(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store)
    async with replica(store, tmp_path / "a") as first:
        await first.open(SESSION)
        await published(first, store, 1)
    async with replica(store, tmp_path / "b") as second:
        opened = await second.open(SESSION)
        assert not any(path.exists() for path in opened.tables["tasks"])
        database = Database(tmp_path / "b")
        rows = await database.query(
            "SELECT count(*) AS n FROM tasks WHERE state = $state", opened.tables, {"state": "FINISHED"}
        )
        await database.close()
        assert rows == [{"n": 3}]


async def test_two_replicas_at_once_write_the_same_bytes_under_one_manifest(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store, segments=6)
    async with replica(store, tmp_path / "a") as first, replica(store, tmp_path / "b") as second:
        one, other = await asyncio.gather(first.open(SESSION), second.open(SESSION))
        assert dict(one.tables).keys() == dict(other.tables).keys()
        for name in one.tables:
            await asyncio.gather(one.tables.fetch([name]), other.tables.fetch([name]))
            assert [path.read_bytes() for path in one.tables[name]] == [
                path.read_bytes() for path in other.tables[name]
            ]
        await published(first, store, 1)
    manifests = [item.key async for item in store.list(manifests_prefix(SESSION))]
    assert len(manifests) in (1, 2)  # whoever lost the number reads the winner's


async def test_concurrent_opens_share_one_ingest(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store)
    async with replica(store, tmp_path / "a") as sessions:
        opened = await asyncio.gather(*(sessions.open(SESSION) for _ in range(8)))
    assert len({id(item.tables) for item in opened}) == 1


async def test_late_segments_reopen_a_final_session(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store)
    async with replica(store, tmp_path / "a") as first:
        await first.open(SESSION)
        await published(first, store, 1)
    await put_segment(store, 9, finished_task(9))
    async with replica(store, tmp_path / "b") as second:
        await second.open(SESSION)
        await published(second, store, 2)
        clock_passed = await newest_manifest(store, SESSION)
        assert clock_passed is not None
        assert (clock_passed.manifest.tasks, len(clock_passed.manifest.inputs)) == (4, 4)


async def test_a_running_session_grows_with_each_look_and_ends(store: ObjectStore, tmp_path: Path) -> None:
    clock = ManualClock(now=NOW)
    await put_records(store, NOW, is_ended=False)
    await put_segment(store, 0, finished_task(0))
    async with replica(store, tmp_path / "a", clock) as sessions:
        opened = await sessions.open(SESSION)
        assert (opened.is_final, opened.ended_at, await opened_tasks(opened)) == (False, None, 1)
        await put_segment(store, 1, finished_task(1))
        clock.advance(4)
        grown = await sessions.open(SESSION)
        assert await opened_tasks(grown) == 2
        assert grown.as_of > opened.as_of
        assert await opened_tasks(opened) == 1  # what was handed out stays readable
        await put_records(store, NOW, is_ended=True)
        clock.advance(4)
        ended = await sessions.open(SESSION)
        assert (ended.is_final, await opened_tasks(ended)) == (True, 2)


async def test_a_running_session_runs_whatever_this_machines_clock_says(store: ObjectStore, tmp_path: Path) -> None:
    await put_records(store, NOW, is_ended=False)
    for hours in (-3, 3):
        clock = ManualClock(now=datetime.now(UTC) + timedelta(hours=hours))
        async with replica(store, tmp_path / str(hours), clock) as sessions:
            assert (await sessions.open(SESSION)).ended_at is None


async def test_a_session_without_events_opens_with_empty_tables(store: ObjectStore, tmp_path: Path) -> None:
    await put_records(store, NOW, is_ended=False)
    async with replica(store, tmp_path / "a") as sessions:
        opened = await sessions.open(SESSION)
        assert (opened.tasks, await opened_tasks(opened)) == (0, 0)


async def test_an_unreadable_record_is_a_gap(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store)
    await store.put(end_record_key(SESSION, "ee" * 28), b"{cut")
    async with replica(store, tmp_path / "a") as sessions:
        opened = await sessions.open(SESSION)
        assert [gap.key for gap in opened.gaps] == [end_record_key(SESSION, "ee" * 28)]


async def test_an_ingest_that_was_killed_goes_on_where_it_was(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SMALL_BYTES", 0)
    monkeypatch.setattr(batches, "BATCH_BYTES", 1)  # each segment is a batch
    await ended_session(store, segments=4)
    children: list[WorkerProcess] = []
    start = WorkerProcess.start

    async def remembered(*arguments: object) -> WorkerProcess:
        children.append(await start(*arguments))  # type: ignore[arg-type]  # whatever start takes
        return children[-1]

    monkeypatch.setattr(WorkerProcess, "start", remembered)
    async with replica(store, tmp_path / "a") as sessions:
        opening = asyncio.create_task(sessions.open(SESSION))
        done = tmp_path / "a" / "work"
        await until(lambda: list(done.glob("*/partial-*/*/report.json")))
        os.kill(children[0].pid, signal.SIGKILL)
        with suppress(Unavailable):
            await opening
        await until(lambda: sessions.is_idle(SESSION))
        assert list(done.glob("*/partial-*/*/report.json"))
        opened = await sessions.open(SESSION)
        assert (opened.is_final, await opened_tasks(opened), opened.gaps) == (True, 4, ())
    assert len(children) == 2


async def test_table_files_that_no_manifest_names_go_after_an_hour(store: ObjectStore, tmp_path: Path) -> None:
    await ended_session(store)
    async with replica(store, tmp_path / "a") as first:
        await first.open(SESSION)
        await published(first, store, 1)
    await put_segment(store, 9, finished_task(9))
    async with replica(store, tmp_path / "b") as second:
        await second.open(SESSION)
        await published(second, store, 2)
    newest = await newest_manifest(store, SESSION)
    assert newest is not None
    assert await sweep_tables(store, SESSION, newest.manifest, newest.number, datetime.now(UTC)) == []
    in_two_hours = datetime.fromtimestamp(datetime.now(UTC).timestamp() + 7200, UTC)
    indexes = LogIndexKey(SESSION, HEAD, "ab" * 16, 20).key
    await store.put(indexes, b"of no manifest")
    swept = await sweep_tables(store, SESSION, newest.manifest, newest.number, in_two_hours)
    assert len(swept) > 5
    assert await store.find(indexes), "what is collected of log packs stays"
    async with replica(store, tmp_path / "c") as third:
        opened = await third.open(SESSION)
        assert await opened_tasks(opened) == 4


QUESTIONS = (
    "SELECT * FROM tasks ORDER BY task_id, attempt_number",
    "SELECT * FROM task_list ORDER BY task_id, attempt_number",
    "SELECT * FROM unfinished_tasks ORDER BY task_id, attempt_number",
    "SELECT state, type, sum(number)::BIGINT AS n FROM task_summary GROUP BY ALL HAVING sum(number) <> 0 ORDER BY ALL",
    "SELECT * FROM workers",
    "SELECT * FROM counters ORDER BY event_type",
)


async def asked(folder: Path, opened: Session) -> list[list[dict[str, object]]]:
    database = Database(folder)
    try:
        return [await database.query(question, opened.tables) for question in QUESTIONS]
    finally:
        await database.close()


async def test_a_tailed_session_answers_as_one_that_was_merged_as_a_whole(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = "c1" * 28
    stuck = [
        definition(task_id(50)),
        lifecycle(task_id(50), [("RUNNING", 3)], workerId=base64_id(worker)),
    ]
    looks = [
        [*finished_task(1), *finished_task(2)[:2], *stuck],
        [*finished_task(2)[2:], *finished_task(3), lifecycle(task_id(4), [("PENDING_ARGS_AVAIL", 1)])],
        [lifecycle(task_id(1), [("FAILED", 99)]), definition(task_id(4)), definition(task_id(1), attempt=1)],
        [worker_lifecycle(worker, "DEAD", 70)],  # closes a task that no event is about
    ]
    clock = ManualClock(now=NOW)
    await put_records(store, NOW, is_ended=False)
    monkeypatch.setattr(table_builder, "is_worth_folding", lambda *_: False)
    async with replica(store, tmp_path / "tailing", clock) as tailing:
        for number, found in enumerate(looks):
            await put_segment(store, number, found)
            clock.advance(4)
            tailed = await tailing.open(SESSION)
            async with replica(store, tmp_path / f"whole-{number}", clock) as other:
                whole = await other.open(SESSION)
                assert await asked(tmp_path / "tailing", tailed) == await asked(tmp_path / f"whole-{number}", whole)
                assert tailed.tasks == whole.tasks
        assert tailed.tables.layers("tasks").newer
        assert not whole.tables.layers("tasks").newer
        monkeypatch.undo()
        await put_segment(store, 9, finished_task(9))
        clock.advance(4)
        folded = await tailing.open(SESSION)
        assert not folded.tables.layers("tasks").newer
        assert await opened_tasks(folded) == whole.tasks + 1
