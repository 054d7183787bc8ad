"""`raykeeper import` from a disk: Ray's session folders, and what a collector could not send."""

from __future__ import annotations

import asyncio
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raykeeper.cli.app import app
from raykeeper.clock import SystemClock
from raykeeper.errors import Misconfigured
from raykeeper.history.commands.import_sessions.from_disk import find_sessions, node_of, read_piece
from raykeeper.history.commands.import_sessions.writing import LogSource, SessionWriter, Tally
from raykeeper.history.entities.job_list import NO_REASON
from raykeeper.history.store.catalog import Catalog
from raykeeper.layout.keys import EventSegmentKey, LogPackKey, SessionId, session_record_key
from raykeeper.layout.packs import parse_index
from raykeeper.layout.records import SessionRecord, encode_record
from support.asking import ask
from support.ingest_scene import finished_task, local_store, segment
from support.raycapture import HEAD, SESSION_NAME, WORKER, RayCapture
from support.stored_sessions import StoredSession
from support.whole_history import built_server

LOCAL = SessionId("local", "laptop", SESSION_NAME)


@pytest.fixture
def ray_folder(raycapture: RayCapture, tmp_path: Path) -> Path:
    """Ray's temporary folder of the recorded head, as it is on a disk."""
    folder = tmp_path / "ray"
    shutil.copytree(raycapture.folder / "session" / "head" / SESSION_NAME, folder / SESSION_NAME, symlinks=True)
    (folder / "session_latest").symlink_to(folder / SESSION_NAME)
    return folder


def run(source: Path, store: Path, *more: str) -> str:
    """The import as a user starts it; what it says."""
    command = ["import", str(source), "--store", f"file://{store}", "--cluster", "laptop", *more]
    outcome = CliRunner().invoke(app, command, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put_unsent(spool: Path, session: SessionId, node_id: str) -> str:
    """A sealed segment as the collector leaves it on disk; its key."""
    key = EventSegmentKey(session, node_id, 1_794_773_400_000_000_000, 0).key
    path = spool / "sealed" / key
    path.parent.mkdir(parents=True)
    path.write_bytes(segment(finished_task(1)))
    return key


def test_every_log_of_a_session_folder_is_in_the_store(
    raycapture: RayCapture, ray_folder: Path, tmp_path: Path
) -> None:
    output = run(ray_folder / SESSION_NAME, tmp_path / "store")
    assert "1 sessions: " in output
    assert StoredSession(tmp_path / "store", LOCAL).logs(HEAD.node_id) == raycapture.log_files(HEAD)
    page = asyncio.run(Catalog(local_store(tmp_path / "store"), SystemClock()).page(10))
    assert [entry.id for entry in page.entries] == [LOCAL]
    assert page.entries[0].start.head_node_id == HEAD.node_id


async def test_the_jobs_of_a_disk_are_known_from_rays_own_event_file(ray_folder: Path, tmp_path: Path) -> None:
    await asyncio.to_thread(run, ray_folder / SESSION_NAME, tmp_path / "store")
    prefix = f"/s/{LOCAL.namespace}/{LOCAL.cluster}/{LOCAL.session}"
    async with built_server(tmp_path / "store", tmp_path / "cache") as server:
        jobs = (await ask(server, f"{prefix}/api/jobs/")).body
        logs = (await ask(server, f"{prefix}/api/jobs/golden-fail/logs")).body
    assert {job["submission_id"]: job["status"] for job in jobs} == {
        "golden-main": "SUCCEEDED",
        "golden-fail": "FAILED",
        "golden-serve": "SUCCEEDED",
        "golden-train": "SUCCEEDED",
        "golden-badenv": "FAILED",
        "golden-long": "STOPPED",
    }
    assert {job["message"].partition(":")[0] for job in jobs if job["status"] == "FAILED"} == {
        NO_REASON,
        "runtime_env setup failed",
    }
    assert "Running entrypoint for job golden-fail: python job_fail.py" in logs["logs"]


def test_importing_a_disk_twice_is_importing_it_once(ray_folder: Path, tmp_path: Path) -> None:
    run(ray_folder, tmp_path / "store")
    once = files_of(tmp_path / "store")
    assert "0 objects written" in run(ray_folder, tmp_path / "store")
    assert files_of(tmp_path / "store") == once


def test_unsent_segments_arrive_and_name_the_cluster(ray_folder: Path, tmp_path: Path) -> None:
    known = SessionId("team-a", "train", SESSION_NAME)
    other = SessionId("team-a", "train", "session_2026-11-14_10-00-00_000000_1")
    keys = [put_unsent(ray_folder / "event-data", session, HEAD.node_id) for session in (known, other)]
    run(ray_folder, tmp_path / "store")
    stored = files_of(tmp_path / "store")
    assert set(keys) <= stored.keys()
    assert StoredSession(tmp_path / "store", known).logs(HEAD.node_id)
    assert session_record_key(other) in stored
    run(ray_folder / SESSION_NAME, tmp_path / "one")
    assert keys[1] not in files_of(tmp_path / "one")


def test_what_the_collector_stored_of_a_session_stays_as_it_is(ray_folder: Path, tmp_path: Path) -> None:
    then = datetime(2026, 11, 15, tzinfo=UTC)
    names = {"namespace": LOCAL.namespace, "cluster": LOCAL.cluster, "session": LOCAL.session}
    record = encode_record(SessionRecord(**names, started_at=then, recorded_at=then, ray_version="2.60.0"))
    asyncio.run(local_store(tmp_path / "store").put(session_record_key(LOCAL), record))
    run(ray_folder, tmp_path / "store")
    stored = files_of(tmp_path / "store")
    assert stored[session_record_key(LOCAL)] == record
    assert not any(key.endswith(("closed.json", "node.json", ".start.json")) for key in stored)
    assert StoredSession(tmp_path / "store", LOCAL).logs(HEAD.node_id)


def test_a_node_is_known_by_its_port_files_or_its_raylets_log(raycapture: RayCapture, ray_folder: Path) -> None:
    folder = ray_folder / SESSION_NAME
    assert node_of(folder) == (HEAD.node_id, True)
    for path in folder.glob("*_port_*"):
        path.unlink()
    assert node_of(folder) == (HEAD.node_id, True)
    assert node_of(raycapture.folder / "session" / "worker" / SESSION_NAME) == (WORKER.node_id, False)


def test_files_that_came_since_the_last_import_are_imported_too(
    raycapture: RayCapture, ray_folder: Path, tmp_path: Path
) -> None:
    late = ray_folder / SESSION_NAME / "logs" / "late.log"
    run(ray_folder, tmp_path / "store")
    late.write_text("came later\n")
    Path(os.fsdecode(os.fsencode(late.parent) + b"/\xff.log")).write_text("odd\n")
    os.utime(late, (1_600_000_000, 1_600_000_000))
    run(ray_folder, tmp_path / "store")
    stored = StoredSession(tmp_path / "store", LOCAL).logs(HEAD.node_id)
    assert stored == raycapture.log_files(HEAD) | {"late.log": b"came later\n", "\ufffd.log": b"odd\n"}


async def test_a_file_that_vanishes_while_it_is_imported_is_a_gap(ray_folder: Path, tmp_path: Path) -> None:
    [session] = find_sessions(ray_folder, None, "local", "laptop")
    store = local_store(tmp_path / "store")
    writer = SessionWriter(store, session.id, Tally(), lambda _: None, is_dry_run=False)
    gone = LogSource("gone.log", "1-1", str(tmp_path / "gone.log"), 10, 1_794_773_400_000_000_000)
    await writer.add_logs(HEAD.node_id, [gone], read_piece)
    assert [line.partition(":")[0] for line in writer.tally.unreadable] == [gone.place]
    [stat] = [stat async for stat in store.list(LogPackKey.prefix(session.id))]
    [gap] = parse_index(await store.get(stat.key)).gaps
    assert (gap.path, gap.length) == ("gone.log", 10)


def test_links_out_of_the_logs_are_not_followed(ray_folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do not store")
    (ray_folder / SESSION_NAME / "logs" / "secret.log").symlink_to(secret)
    run(ray_folder, tmp_path / "store")
    assert "secret.log" not in StoredSession(tmp_path / "store", LOCAL).logs(HEAD.node_id)


def test_a_folder_without_sessions_is_refused_by_name(tmp_path: Path) -> None:
    assert find_sessions(tmp_path, None, "a", "b") == []
    outcome = CliRunner().invoke(app, ["import", str(tmp_path), "--store", f"file://{tmp_path / 'store'}"])
    assert isinstance(outcome.exception, Misconfigured)
    assert str(tmp_path) in str(outcome.exception)
