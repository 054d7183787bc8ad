"""The database reads the given tables and nothing else, a few statements at a time, with time and memory limited."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import duckdb
import pytest

from raykeeper.errors import Unavailable
from raykeeper.history.ingest.session import FixedTables
from raykeeper.history.query.database import Database, DatabaseSettings
from support.ingest_scene import finished_task, tables_of, task_id

NONE = FixedTables({})
SLOW = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = $x"


async def test_values_are_bound_and_a_table_without_files_is_empty(tmp_path: Path) -> None:
    tables_of(tmp_path, finished_task(1))
    files = FixedTables({"tasks": sorted((tmp_path / "tables" / "tasks").iterdir())})
    database = Database(tmp_path)
    for value, count in ((task_id(1), 1), ("' OR true --", 0)):
        rows = await database.query("SELECT count(*) AS n FROM tasks WHERE task_id = $id", files, {"id": value})
        assert rows == [{"n": count}]
    assert await database.query("SELECT * FROM actors", files) == []
    await database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "SET memory_limit = '1TB'",
        "INSTALL httpfs",
    ],
)
async def test_a_statement_reaches_no_file_but_the_caches(statement: str, tmp_path: Path) -> None:
    database = Database(tmp_path)
    with pytest.raises(duckdb.Error):
        await database.query(statement, NONE)
    await database.close()


async def test_a_statement_that_takes_too_long_is_interrupted_and_the_next_one_runs(tmp_path: Path) -> None:
    database = Database(tmp_path, DatabaseSettings(connections=1, timeout_seconds=0.2))
    with pytest.raises(Unavailable, match=r"not done after 0\.2 s"):
        await database.query(SLOW, NONE, {"x": -1})
    assert await database.query("SELECT 1 AS one", NONE) == [{"one": 1}]
    await database.close()


async def test_a_request_that_is_given_up_frees_its_connection(tmp_path: Path) -> None:
    database = Database(tmp_path, DatabaseSettings(connections=1))
    slow = asyncio.create_task(database.query(SLOW, NONE, {"x": -1}))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(database.query("SELECT 1 AS one", NONE))
    slow.cancel()
    assert await waiting == [{"one": 1}]
    await database.close()


async def test_more_than_may_wait_are_refused_at_once(tmp_path: Path) -> None:
    database = Database(tmp_path, DatabaseSettings(connections=1, waiting_limit=1))
    tasks = [asyncio.create_task(database.query(SLOW, NONE, {"x": -1})) for _ in range(3)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    [refused] = done
    with pytest.raises(Unavailable, match="1 are waiting"):
        refused.result()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await database.close()


async def test_rows_become_what_is_made_of_them_without_being_all_in_memory(tmp_path: Path) -> None:
    database = Database(tmp_path)
    tracemalloc.start()
    try:
        sql = "SELECT number, repeat('x', 10000) AS text FROM range($rows) AS rows(number)"
        found = await database.query_shaped(sql, NONE, {"rows": 5000}, lambda row: (row["number"], len(row["text"])))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await database.close()
    assert found == [(number, 10_000) for number in range(5000)]
    assert peak_bytes < 20_000_000  # all rows are 50 MB
