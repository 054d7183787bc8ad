"""From ids to files where the recorded run has no example: earlier incarnations, old versions, open ranges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from raykeeper.history.ingest.session import FixedTables
from raykeeper.history.ingest.tables import ACTOR_TRANSITIONS_TYPE, ACTORS, JOBS, NODES, TASKS, Table
from raykeeper.layout.records import SessionRecord
from support.asking import ask
from support.history_scene import (
    HEAD_ID,
    SESSION,
    STARTED_AT,
    WORKER_ID,
    PackBuilder,
    Scene,
    a_scene,
    opened_plainly,
    put_session,
    session_url,
)

ACTOR_ID, TASK_ID = "ac" * 16, "da" * 24
FIRST, SECOND = "11" * 28, "22" * 28
"""Workers."""


class Rows:
    """Writes rows of tables, each with the columns a test is about."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder / "cache"

    def have(self, table: Table, values: Mapping[str, str], *, ray_version: str = "2.60.0") -> None:
        """One row; values are SQL."""
        columns = ", ".join(f'({values.get(c.name, "NULL")})::{c.type} AS "{c.name}"' for c in table.columns)
        file = self._folder / f"{table.name}.parquet"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT {columns}) TO '{file}' (FORMAT parquet)")
        opened = self._scene.sessions.opened.get(SESSION, opened_plainly(SESSION))
        names = {"namespace": SESSION.namespace, "cluster": SESSION.cluster, "session": SESSION.session}
        record = SessionRecord(**names, started_at=STARTED_AT, recorded_at=STARTED_AT, ray_version=ray_version)
        tables = {**opened.tables, table.name: (file,)}
        self._scene.sessions.opened[SESSION] = replace(opened, record=record, tables=FixedTables(tables))


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = a_scene(tmp_path)
    await put_session(scene.store)
    return scene


@pytest.fixture
def rows(scene: Scene, tmp_path: Path) -> Rows:
    return Rows(scene, tmp_path)


async def log_of(scene: Scene, query: str) -> str:
    return (await ask(scene.app, f"{session_url()}/api/v0/logs/file?{query}")).text


def alive(ns: int, node_id: str, worker_id: str) -> str:
    values = {"ns": str(ns), "state": "'ALIVE'", "node_id": f"'{node_id}'", "worker_id": f"'{worker_id}'"}
    fields = [part.split()[0] for part in ACTOR_TRANSITIONS_TYPE[7:-3].split(", ")]
    return "{" + ", ".join(f"'{name}': {values.get(name, 'NULL')}" for name in fields) + "}"


async def test_an_actor_whose_last_incarnation_left_no_file_shows_the_one_before(
    scene: Scene, rows: Rows, tmp_path: Path
) -> None:
    rows.have(
        ACTORS,
        {"actor_id": f"'{ACTOR_ID}'", "transitions": f"[{alive(1, WORKER_ID, FIRST)}, {alive(2, HEAD_ID, SECOND)}]"},
    )
    head, worker = PackBuilder(scene.store), PackBuilder(scene.store, node_id=WORKER_ID)
    head.add("raylet.out", b"x")
    await head.put()
    worker.add(f"worker-{FIRST}-02000000-17.out", b"first life\n")
    await worker.put()
    assert await log_of(scene, f"actor_id={ACTOR_ID}") == "first life\n"
    head.add(f"worker-{SECOND}-02000000-18.out", b"second life\n")
    await head.put()
    replica = a_scene(tmp_path)  # it has listed nothing yet
    replica.sessions.opened = scene.sessions.opened
    assert await log_of(replica, f"actor_id={ACTOR_ID}") == "second life\n"
    assert (await log_of(scene, f"actor_id={ACTOR_ID}&suffix=err")).startswith("Could not find a log file.")


TASK = {"task_id": f"'{TASK_ID}'", "attempt_number": "0", "node_id": f"'{HEAD_ID}'", "worker_id": f"'{FIRST}'"}


async def test_a_task_of_an_old_ray_shows_its_workers_whole_file(scene: Scene, rows: Rows) -> None:
    packs = PackBuilder(scene.store)
    packs.add(f"worker-{FIRST}-02000000-17.out", b"of all tasks\n")
    await packs.put()
    rows.have(TASKS, TASK, ray_version="2.52.0")
    assert await log_of(scene, f"task_id={TASK_ID}") == "of all tasks\n"
    rows.have(TASKS, TASK, ray_version="2.54.1")
    assert (await log_of(scene, f"task_id={TASK_ID}")).endswith("log_info = None")
    rows.have(TASKS, TASK, ray_version="")  # a head that took long to say what it is
    scene.sessions.have_polled(SESSION, "/api/version", {"ray_version": "2.52.0"})
    assert await log_of(scene, f"task_id={TASK_ID}") == "of all tasks\n"


async def test_a_task_that_never_said_where_its_output_ends_shows_it_to_the_end(scene: Scene, rows: Rows) -> None:
    path = f"/mnt/elsewhere/{SESSION.session}/logs/worker-{FIRST}-02000000-17.out"
    packs = PackBuilder(scene.store)
    packs.add(f"worker-{FIRST}-02000000-17.out", b"another's\nmine\nthe end")
    await packs.put()
    rows.have(TASKS, {**TASK, "stdout_file": f"'{path}'", "stdout_start": "10"})
    assert await log_of(scene, f"task_id={TASK_ID}") == "mine\nthe end"
    rows.have(TASKS, {**TASK, "stdout_file": f"'{path}'", "stdout_start": "10", "stdout_end": "15"})
    assert await log_of(scene, f"task_id={TASK_ID}") == "mine\n"
    assert await log_of(scene, f"task_id={TASK_ID}&lines=1") == "mine\n"
    assert (await log_of(scene, f"task_id={TASK_ID}&attempt_number=1")).endswith(f"{TASK_ID}(1)")


async def test_a_tasks_output_is_found_where_ray_moved_it(scene: Scene, rows: Rows) -> None:
    """Ray's log monitor moves files of dead workers to `logs/old/`; the live dashboard then finds nothing."""
    path = f"/mnt/elsewhere/{SESSION.session}/logs/worker-{FIRST}-02000000-17.out"
    packs = PackBuilder(scene.store)
    packs.add(f"old/worker-{FIRST}-02000000-17.out", b"another's\nmine\nanother's")
    await packs.put()
    rows.have(TASKS, {**TASK, "stdout_file": f"'{path}'", "stdout_start": "10", "stdout_end": "15"})
    assert await log_of(scene, f"task_id={TASK_ID}") == "mine\n"


async def test_a_deleted_job_has_the_end_that_rays_event_file_tells(scene: Scene, rows: Rows) -> None:
    """`ray job delete` takes a job out of the dashboard's list; its driver's events stay."""
    message = "Completed a ray job gone with a status FAILED. exit code 17"
    line = {"event_id": "e", "message": message, "timestamp": "1794000000", "custom_fields": {"submission_id": "gone"}}
    packs = PackBuilder(scene.store)
    packs.add("events/event_JOBS.log", json.dumps(line).encode() + b"\n")
    await packs.put()
    scene.sessions.have_polled(SESSION, "/api/jobs/", [])
    rows.have(JOBS, {"job_id": "'02000000'", "submission_id": "'gone'", "has_definition": "true", "created_ns": "1"})
    [job] = (await ask(scene.app, f"{session_url()}/api/jobs/")).body
    assert (job["submission_id"], job["status"], job["message"]) == ("gone", "FAILED", "exit code 17")


async def test_a_range_outside_of_a_file_is_empty(scene: Scene, rows: Rows) -> None:
    packs = PackBuilder(scene.store)
    packs.add("worker.out", b"short\n")
    await packs.put()
    for start, end in (("100", "200"), ("6", "6"), ("5", "2")):
        rows.have(TASKS, {**TASK, "stdout_file": "'worker.out'", "stdout_start": start, "stdout_end": end})
        assert await log_of(scene, f"task_id={TASK_ID}&lines=-1") == ""


async def test_an_address_means_the_node_that_had_it_last(scene: Scene, rows: Rows) -> None:
    rows.have(NODES, {"node_id": f"'{HEAD_ID}'", "node_ip": "'10.0.0.1'", "started_ns": "1"})
    packs = PackBuilder(scene.store)
    packs.add("raylet.out", b"x\n")
    await packs.put()
    assert await log_of(scene, "node_ip=10.0.0.1&filename=raylet.out") == "x\n"
    assert (await log_of(scene, "node_ip=10.0.0.2&filename=raylet.out")).startswith("Could not find a log file.")
