"""A million tasks with 35,000 failures of 40 kinds: the report is quick, bounded in memory, and exact."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from goldensession import ReadySession
from ingest_scene import SESSION, START_NS
from raykeeper.history.asked import Asked
from raykeeper.history.database import Database, DatabaseSettings
from raykeeper.history.report.making import GROUPS_LIMIT, make_report
from raykeeper.history.tables import ALL_TABLES, Table
from report_scene import NO_LOGS, failed, report_of

TASKS, FAILURES, KINDS = 1_000_000, 35_000, 40
EVERY = TASKS // FAILURES
REPORT_CPU_SECONDS = 2.5
"""Three times what it takes: processor time grows too while other tests fill the caches."""

FILLED = {
    "task_id": "printf('%016xffffffffffffffffffffffff01000000', hash(number))",
    "attempt_number": "0",
    "job_id": "'01000000'",
    "has_definition": "true",
    "type": "'NORMAL_TASK'",
    "state": "CASE WHEN has_failed THEN 'FAILED' ELSE 'FINISHED' END",
    "name": "'step_' || number % 20",
    "func_or_class_name": "'step_' || number % 20",
    "node_id": "printf('%056x', number % 100)",
    "worker_id": "printf('%056x', number % 3000)",
    "start_ns": f"{START_NS} + number * 1000",
    "end_ns": f"{START_NS} + number * 1000 + 500",
    "error_type": "CASE WHEN has_failed THEN 'TASK_EXECUTION_EXCEPTION' END",
    # Forty words by letters alone: digits are taken out of a message.
    "error_message": f"""CASE WHEN has_failed THEN 'User exception:\\nray::step() (pid=' || number || ')\\n'
        || repeat('  File "/app/' || number || '.py", line ' || number || ', in step\\n    call()\\n', 8)
        || 'ValueError: kind ' || chr(107 + (number // {EVERY} % {KINDS} // 8)::INTEGER)
        || chr(107 + (number // {EVERY} % 8)::INTEGER) || ' of ' || printf('%016x', hash(number)) END""",
}


@pytest.fixture
def tables(tmp_path: Path) -> Mapping[str, tuple[Path, ...]]:
    with duckdb.connect() as connection:
        return {name: (_write(connection, ALL_TABLES[name], tmp_path),) for name in ("tasks", "task_list")}


def _write(connection: duckdb.DuckDBPyConnection, table: Table, folder: Path) -> Path:
    file = folder / f"{table.name}.parquet"
    columns = ", ".join(
        f'({FILLED.get(column.name, "NULL")})::{column.type} AS "{column.name}"' for column in table.columns
    ).replace("\\n", "' || chr(10) || '")
    has_failed = f"range % {EVERY} = 0 AND range < {FAILURES * EVERY} AS has_failed"
    source = f"(SELECT range AS number, {has_failed} FROM range({TASKS}))"
    connection.execute(f"COPY (SELECT {columns} FROM {source}) TO '{file}' (FORMAT parquet)")
    return file


async def test_a_million_tasks_are_reported_quickly_within_little_memory(
    tables: Mapping[str, tuple[Path, ...]], tmp_path: Path
) -> None:
    session = ReadySession(SESSION, None, tables, datetime(2026, 11, 15, 12, tzinfo=UTC), {})
    database = Database(tmp_path, DatabaseSettings(memory_bytes=200 << 20))
    try:
        began = time.process_time()
        report = await make_report(Asked(session, database, NO_LOGS))
        took = time.process_time() - began
    finally:
        await database.close()
    assert (report.counts.attempts, report.counts.failures, report.counts.ungrouped) == (TASKS, FAILURES, 0)
    assert len(report.groups) == KINDS
    assert {group.failures for group in report.groups} == {FAILURES // KINDS}
    assert all(len(group.nodes) <= 50 and len(group.functions) <= 20 for group in report.groups)
    assert took < REPORT_CPU_SECONDS


async def test_kinds_too_rare_to_be_listed_are_counted(tmp_path: Path) -> None:
    words = [f"{chr(107 + number // 10)}{chr(107 + number % 10)} broke" for number in range(GROUPS_LIMIT + 7)]
    report = await report_of(tmp_path, [one for number, word in enumerate(words) for one in failed(number, "X", word)])
    assert (len(report.groups), report.counts.failures, report.counts.ungrouped) == (GROUPS_LIMIT, GROUPS_LIMIT + 7, 7)


async def test_a_rare_first_cause_is_found_among_many_kinds_that_are_more_frequent(tmp_path: Path) -> None:
    words = [f"{chr(107 + number // 10)}{chr(107 + number % 10)} broke" for number in range(GROUPS_LIMIT + 7)]
    often = [one for number, word in enumerate(words * 2) for one in failed(number + 2, "X", word, seconds=20)]
    once = failed(1, "RUNTIME_ENV_SETUP_FAILED", "OSError: no package", seconds=5)
    report = await report_of(tmp_path, [*often, *once])
    assert report.first_cause is not None
    assert report.first_cause.rule == "failed_environment"
    assert "RUNTIME_ENV_SETUP_FAILED" not in {group.error_type for group in report.groups}
