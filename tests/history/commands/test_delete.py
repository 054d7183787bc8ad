"""`raykeeper delete` removes a session for good, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from raykeeper.cli.app import app
from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.history.commands.delete import Deletion, NoSuchSession, parse_age
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    KubeFactsKey,
    LogPackKey,
    SessionId,
    node_record_key,
    session_record_key,
    table_key,
)
from raykeeper.storage.errors import StoreUnavailable
from support.ingest_scene import HEAD, finished_task, local_store
from support.kuberay_buckets import OF_A_JOB, PLAIN, KubeRayBucket

DOOMED = SessionId("team-a", "train", "session_1")
NEIGHBOURS = [
    SessionId("team-a", "train", "session_10"),
    SessionId("team-a", "train", "session_1%"),
    SessionId("team-a", "train", "session_2"),
    SessionId("team-a", "train-2", "session_1"),
    SessionId("team-a", "t", "session_1"),
    SessionId("team-b", "train", "session_1"),
]
DAY = date(2026, 11, 15)


def put_session(folder: Path, session: SessionId) -> None:
    """As a local store has it: each object a file at its key."""
    keys = [
        session_record_key(session),
        node_record_key(session, HEAD),
        EventSegmentKey(session, HEAD, 1_794_773_400_000_000_000, 0).key,
        LogPackKey(session, HEAD, 1_794_773_400_000_000_000, 0).key,
        table_key(session, "tasks", "batch"),
        KubeFactsKey(session.namespace, session.cluster, "uid", 1_794_773_400_000_000_000).key,
        *(CatalogKey(DAY, session, part).key for part in ("start", "end", "summary")),
    ]
    for key in keys:
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{session} {key}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a session and others that are called nearly the same."""
    for session in (DOOMED, *NEIGHBOURS):
        put_session(tmp_path, session)
    return tmp_path


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def belongs(key: str, sessions: Sequence[SessionId]) -> bool:
    entries = [CatalogKey(DAY, session, part).key for session in sessions for part in ("start", "end", "summary")]
    return key in entries or any(key.startswith(session.prefix) for session in sessions)


def delete(folder: Path, *more: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["delete", "--store", f"file://{folder}", *more], input=answer)


def test_a_session_goes_and_its_neighbours_stay_byte_for_byte(folder: Path) -> None:
    before = files_of(folder)
    outcome = delete(folder, str(DOOMED), "--yes")
    assert outcome.exit_code == 0, outcome.output
    assert f"{DOOMED}: 8 objects" in outcome.output
    expected = {key: data for key, data in before.items() if not belongs(key, [DOOMED])}
    assert len(before) - len(expected) == 8
    assert files_of(folder) == expected
    assert KubeFactsKey("team-a", "train", "uid", 1_794_773_400_000_000_000).key in expected


@pytest.mark.parametrize(("answer", "is_gone"), [("y\n", True), ("n\n", False), ("", False)])
def test_it_says_what_goes_and_asks(folder: Path, answer: str, is_gone: bool) -> None:
    before = files_of(folder)
    outcome = delete(folder, str(DOOMED), answer=answer)
    assert outcome.output.index("8 objects") < outcome.output.index("for good?")
    assert (files_of(folder) != before) is is_gone


def test_a_dry_run_deletes_nothing(folder: Path) -> None:
    before = files_of(folder)
    assert "8 objects" in delete(folder, str(DOOMED), "--dry-run").output
    assert files_of(folder) == before


@pytest.mark.parametrize(
    "name",
    ["team-a/train", "team-a/train/", "team-a//session_1", "", "team-a/train/session_1/events", "team-a/train/kube"],
)
def test_what_is_no_whole_name_deletes_nothing(folder: Path, name: str) -> None:
    before = files_of(folder)
    outcome = delete(folder, name, "--yes")
    assert isinstance(outcome.exception, Misconfigured)
    assert files_of(folder) == before


@pytest.mark.parametrize("name", ["team-a/train/session_", "team-a/train/..", "../../etc", "team-a/train/session_3"])
def test_a_session_that_is_not_there_is_named(folder: Path, name: str) -> None:
    before = files_of(folder)
    outcome = delete(folder, name, "--yes")
    assert isinstance(outcome.exception, NoSuchSession)
    assert files_of(folder) == before


def test_old_sessions_go_when_nobody_wrote_to_them_for_so_long(folder: Path) -> None:
    old = [DOOMED, NEIGHBOURS[0], NEIGHBOURS[5]]
    for key in files_of(folder):
        is_made_by_readers = "/tables/" in key or key.endswith(".summary.json")
        if belongs(key, old) and not is_made_by_readers:
            aged = time.time() - 100 * 24 * 3600
            os.utime(folder / key, (aged, aged))
    before = files_of(folder)
    assert "nothing to delete" in delete(folder, "--older-than", "101d", "--yes").output
    assert delete(folder, "--older-than", "90d", "--dry-run").output.count("objects") == 3
    delete(folder, "--older-than", "90d", "--namespace", "team-a", "--yes")
    assert files_of(folder) == {key: data for key, data in before.items() if not belongs(key, old[:2])}
    delete(folder, "--older-than", "90d", "--yes")
    assert files_of(folder) == {key: data for key, data in before.items() if not belongs(key, old)}


async def test_a_deletion_that_broke_is_completed_by_the_next(tmp_path: Path) -> None:
    put_session(tmp_path, DOOMED)
    store = local_store(tmp_path)

    class Breaking:
        def __init__(self, deletes: int) -> None:
            self.left = deletes

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def delete(self, key: str) -> None:
            if self.left == 0:
                raise StoreUnavailable("store", key, "broken")
            self.left -= 1
            await store.delete(key)

    for left in range(7, 0, -1):
        breaking = Deletion(Breaking(1), SystemClock())  # type: ignore[arg-type]  # a store in all that is used
        with pytest.raises(StoreUnavailable):
            await breaking.delete(await breaking.find(DOOMED))
        found = await Deletion(store, SystemClock()).find(DOOMED)
        assert len(found.data) + len(found.entries) == left
        assert found.entries, "what lists a session goes last"
    await Deletion(Breaking(1), SystemClock()).delete(found)  # type: ignore[arg-type]
    assert not any(belongs(key, [DOOMED]) for key in files_of(tmp_path))


async def test_a_session_of_kuberays_goes_with_its_marker(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    for place in (PLAIN, OF_A_JOB):
        bucket = KubeRayBucket(store, place)
        await bucket.put_marker()
        await bucket.put_events(HEAD, finished_task(1))
        await store.put(table_key(place.session, "tasks", "batch"), b"rows")
    kept = {key: data for key, data in files_of(tmp_path).items() if OF_A_JOB.session.cluster in key}
    deletion = Deletion(store, SystemClock())
    await deletion.delete(await deletion.find(PLAIN.session))
    assert files_of(tmp_path) == kept


@pytest.mark.parametrize("text", ["90", "d", "-3d", "0d", "3 d", "1y", "999999d"])
def test_an_age_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured, match="older-than"):
        parse_age("--older-than", text)


def test_an_age_is_hours_days_or_weeks() -> None:
    found = [parse_age("--older-than", text) for text in ("12h", "90d", "2w")]
    assert found == [timedelta(hours=12), timedelta(days=90), timedelta(days=14)]
