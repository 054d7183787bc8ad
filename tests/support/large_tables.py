"""The tables of a session of a million tasks, of which 35,000 failed in 40 ways: written at once, without any event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.ingest.tables import ALL_TABLES, TASK_SUMMARY, Table
from support.ingest_scene import SESSION, START_NS

TASKS, FAILURES, KINDS = 1_000_000, 35_000, 40
EVERY = TASKS // FAILURES
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
ROWS = {"tasks": "true", "task_list": "true", "unfinished_tasks": "has_failed"}
"""Which of the tasks are in which table."""


def large_session(folder: Path) -> Session:
    """The session, whose files are in the folder from now on."""
    with duckdb.connect() as connection:
        tables = {name: (_write(connection, ALL_TABLES[name], folder),) for name in ROWS}
        summary = (_write_summary(connection, folder),)
    return known_session({**tables, TASK_SUMMARY.name: summary})


def known_session(tables: Mapping[str, tuple[Path, ...]]) -> Session:
    """The session of tables that were written before."""
    return Session(SESSION, FixedTables(tables), datetime(2026, 11, 15, 12, tzinfo=UTC))


def _write(connection: duckdb.DuckDBPyConnection, table: Table, folder: Path) -> Path:
    file = folder / f"{table.name}.parquet"
    columns = ", ".join(
        f'({FILLED.get(column.name, "NULL")})::{column.type} AS "{column.name}"' for column in table.columns
    ).replace("\\n", "' || chr(10) || '")
    has_failed = f"range % {EVERY} = 0 AND range < {FAILURES * EVERY} AS has_failed"
    source = f"(SELECT range AS number, {has_failed} FROM range({TASKS})) WHERE {ROWS[table.name]}"
    connection.execute(f"COPY (SELECT {columns} FROM {source}) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 20480)")
    return file


def _write_summary(connection: duckdb.DuckDBPyConnection, folder: Path) -> Path:
    file, keys = folder / f"{TASK_SUMMARY.name}.parquet", ", ".join(TASK_SUMMARY.key)
    listed = f"read_parquet('{folder / 'task_list.parquet'}')"
    counted = f"SELECT {keys}, count(*) AS number FROM {listed} GROUP BY {keys}"
    connection.execute(f"COPY ({counted}) TO '{file}' (FORMAT parquet)")
    return file
