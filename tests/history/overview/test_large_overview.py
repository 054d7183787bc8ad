"""A million tasks: a session and a job are looked at quickly, pages stay small, and numbers are exact."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from bed.waiting import BUSY_FACTOR
from raykeeper.history.http.keeper_api.overview import overview_of_job, overview_of_session
from raykeeper.history.http.pages.job_tabs import tasks_tab, timeline_picture
from raykeeper.history.http.pages.session import session_page
from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.ingest.tables import ALL_TABLES, Table
from raykeeper.history.overview.job_rows import ATTEMPTS_OF_PAGE, AttemptsRequest, attempts_of_job
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database, DatabaseSettings
from raykeeper.history.report.make import make_report
from raykeeper.times import NS
from support.ingest_scene import SESSION, START_NS
from support.overview_scene import at
from support.report_scene import no_logs

TASKS, JOBS, FUNCTIONS = 1_000_000, 2, 150
ROWS = {"tasks": TASKS, "task_list": TASKS, "jobs": JOBS, "nodes": 100}
STEP_NS, LENGTH_NS = 1_000_000, NS // 2
FIRST_CPU_SECONDS, NEXT_CPU_SECONDS = 1.3 * BUSY_FACTOR, 0.2 * BUSY_FACTOR
"""Processor time grows too while other tests fill the caches."""
PAGE_LIMIT_BYTES = 200_000

FILLED = {
    "task_id": "printf('%016xffffffffffffffffffffffff%02x000000', hash(number), 1 + number % 2)",
    "attempt_number": "0",
    "job_id": f"printf('%02x000000', 1 + number % {JOBS})",
    "has_definition": "true",
    "type": "'NORMAL_TASK'",
    "required_resources": "'{\"CPU\": 2.0}'",
    "state": "CASE WHEN number % 100 = 0 THEN 'FAILED' ELSE 'FINISHED' END",
    "name": f"'a_function_of_a_usual_length_' || number // 2 % {FUNCTIONS}",
    "func_or_class_name": "'f'",
    "node_id": "printf('%056x', number % 100)",
    "creation_ns": f"{START_NS} + number * {STEP_NS}",
    "start_ns": f"{START_NS} + number * {STEP_NS} + 1000",
    "end_ns": f"{START_NS} + number * {STEP_NS} + 1000 + {LENGTH_NS}",
    "driver_pid": "1",
    "created_ns": str(START_NS),
    "started_ns": str(START_NS),
    "resources_total": "'{\"CPU\": 64.0}'",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of such a session."""
    made = tmp_path_factory.mktemp("million")
    with duckdb.connect() as connection:
        for name, rows in ROWS.items():
            _write(connection, ALL_TABLES[name], rows, made)
    return made


@pytest.fixture
async def context(folder: Path) -> AsyncIterator[SessionContext]:
    tables = {name: (folder / f"{name}.parquet",) for name in ROWS}
    as_of = at(0) + timedelta(microseconds=TASKS * STEP_NS // 1000 + LENGTH_NS // 1000)
    database = Database(folder, DatabaseSettings(memory_bytes=200 << 20))
    try:
        yield SessionContext(Session(SESSION, FixedTables(tables), as_of), database, no_logs())
    finally:
        await database.close()


def _write(connection: duckdb.DuckDBPyConnection, table: Table, rows: int, folder: Path) -> None:
    file = folder / f"{table.name}.parquet"
    columns = ", ".join(
        f'({FILLED.get(column.name, "NULL")})::{column.type} AS "{column.name}"' for column in table.columns
    )
    connection.execute(f"COPY (SELECT {columns} FROM range({rows}) AS r(number)) TO '{file}' (FORMAT parquet)")


async def test_a_million_tasks_are_looked_at_quickly(context: SessionContext) -> None:
    report = await make_report(context)
    began = time.process_time()
    overview = await overview_of_session(context)
    first = time.process_time() - began
    began = time.process_time()
    page = session_page(await overview_of_session(context), report)
    following = time.process_time() - began
    assert (first < FIRST_CPU_SECONDS, following < NEXT_CPU_SECONDS) == (True, True), (first, following)
    assert len(page.body) < PAGE_LIMIT_BYTES
    assert (overview.counts.attempts, overview.counts.failed) == (TASKS, TASKS // 100)
    assert (sum(overview.tasks.finished), sum(overview.tasks.failed)) == (TASKS * 99 // 100, TASKS // 100)
    assert max(overview.tasks.running) == pytest.approx(LENGTH_NS / STEP_NS, rel=0.01)
    assert (len(overview.functions.rows), overview.functions.left_out) == (100, FUNCTIONS - 100)
    assert {row.p50_seconds for row in overview.functions.rows} == {0.5}
    [cpu] = overview.resources.rows
    assert cpu.asked == pytest.approx(TASKS * 2 * 0.5 / 3600)
    assert (len(overview.nodes.rows), overview.nodes.left_out) == (40, 60)


async def test_one_job_of_a_million_tasks_has_a_bounded_time_line(context: SessionContext) -> None:
    began = time.process_time()
    overview = await overview_of_job(context, "01000000")
    first = time.process_time() - began
    assert first < FIRST_CPU_SECONDS
    assert overview.counts.attempts == TASKS // JOBS
    marks = sum(len(lane.spans) + len(lane.marks) + bool(lane.levels) for lane in overview.timeline.lanes)
    assert marks < 400
    assert len(timeline_picture(overview.timeline)) < PAGE_LIMIT_BYTES


async def test_the_attempts_of_a_million_tasks_are_listed_a_page_at_a_time(context: SessionContext) -> None:
    overview, wanted = await overview_of_job(context, "01000000"), AttemptsRequest(words="LENGTH_7", start=100)
    began = time.process_time()
    attempts = await attempts_of_job(context, "01000000", wanted)
    assert time.process_time() - began < FIRST_CPU_SECONDS
    assert len(attempts.rows) == ATTEMPTS_OF_PAGE
    assert {row.function for row in attempts.rows} <= {f"a_function_of_a_usual_length_{n}" for n in (7, *range(70, 80))}
    assert len(tasks_tab(overview, SESSION, attempts, wanted, (), "")) < PAGE_LIMIT_BYTES
    first = await attempts_of_job(context, "01000000", AttemptsRequest())
    assert {row.state for row in first.rows} == {"FAILED"}
    assert first.number == TASKS // JOBS
