# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""DuckDB over the Parquet files of sessions: one bound statement at a time on each of a few connections.

Queries wait for a connection, and some of these are for other namespaces than the one that asks most, so that nobody
starves another. Memory is limited for all together.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import duckdb

from raykeeper.errors import Unavailable
from raykeeper.history.fair_turns import FairTurns
from raykeeper.history.ingest.database import literal, literals
from raykeeper.history.ingest.session import Layers, Tables
from raykeeper.history.ingest.tables import ALL_TABLES, Table
from raykeeper.history.samples.table import SAMPLE_TABLES
from raykeeper.history.store.disk_cache import own_folder, remove_abandoned

_INTERRUPT_SECONDS = 0.05
_LOST_FILE_TRIES = 3
_KEPT_FREE = 2  # connections that no namespace takes alone: its statements may run for a minute each
_COPY_GROUP_ROWS = 30_720  # what a range of a sorted file does not touch is skipped in steps of this
_ROWS_AT_ONCE = 500  # as Python objects a wide row takes 10 KB, so that ten thousand at once are 100 MB
_TABLES = {**ALL_TABLES, **SAMPLE_TABLES}
_TABLE_NAME = re.compile(rf"\b({'|'.join(_TABLES)})\b")
Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class DatabaseSettings:
    memory_bytes: int = 256 << 20
    """For all queries together; larger sorts go to disk."""
    connections: int = 6
    """Statements at a time, two less of one namespace; more wait."""
    threads: int = 2
    """Of all statements together."""
    timeout_seconds: float = 60.0
    """A statement that runs longer is interrupted."""
    waiting_limit: int = 500
    """Statements of one namespace that wait; one more is refused as unavailable, which a browser asks again in four
    seconds."""


class RowsCopy:
    """The rows of a statement in a file on this machine, as long as somebody holds this."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        weakref.finalize(self, _remove, path)

    @property
    def source(self) -> str:
        """What a statement reads them from."""
        return f"read_parquet({literals([self.path])})"

    @property
    def is_there(self) -> bool:
        """Whether nobody has deleted the file: losing the cache's folder loses time and nothing else."""
        return self.path.exists()


class Database:
    """Answers statements over tables given as files. Start nothing else on its connections."""

    def __init__(self, folder: Path, settings: DatabaseSettings | None = None) -> None:
        self._settings = settings or DatabaseSettings()
        self._root = _connect(folder, self._settings)
        # The one used last is used next: whoever is alone here keeps one set of views, and not one for each connection.
        self._free = [_Connection(self._root.cursor()) for _ in range(self._settings.connections)]
        self._threads = ThreadPoolExecutor(self._settings.connections, thread_name_prefix="query")
        connections = self._settings.connections
        self._turns = FairTurns(connections, share=max(1, connections - _KEPT_FREE))
        self._copies = _CopiesFolder(folder / "copies")

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._free.clear()
        self._root.close()
        self._copies.close()
        del self._root  # else DuckDB's binding tells of a leak where something outlives the loop that held this

    async def query(self, sql: str, tables: Tables, params: Mapping[str, object] | None = None) -> list[Row]:
        """Rows of one statement that calls tables by their names; a table without files is empty.

        Raises Unavailable when too much waits, memory is used up, or the time is over. Files that somebody deletes from
        under a statement are brought back, and it starts again.
        """
        return await self.query_shaped(sql, tables, params or {}, _as_it_is)

    async def copy(self, sql: str, tables: Tables, params: Mapping[str, object]) -> RowsCopy:
        """The rows of a statement as a file, in their order. Raises as `query` does."""
        made = RowsCopy(self._copies.new_path())
        how = f"FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE {_COPY_GROUP_ROWS}"
        [written] = await self.query(f"COPY ({sql}) TO {literal(made.path)} ({how})", tables, params)
        made.rows = written["Count"]
        return made

    async def query_shaped(
        self,
        sql: str,
        tables: Tables,
        params: Mapping[str, object],
        shape: Callable[[Row], T],
    ) -> list[T]:
        """What `shape` makes of each row, on the statement's own thread; the rows are never all in memory."""
        names = sorted(set(_TABLE_NAME.findall(sql)))
        await tables.fetch(names)
        views = {name: tables.layers(name) for name in names}
        statement = _Statement(sql, dict(params), shape)
        try:
            for _ in range(_LOST_FILE_TRIES):
                try:
                    return await self._query(statement, views, tables.owner)
                except duckdb.IOException:
                    await tables.restore(names)
            return await self._query(statement, views, tables.owner)
        except duckdb.Error as exc:
            # What others put into the store may be no table of ours; what this server made itself is, or it is a bug.
            if tables.distrust():
                raise Unavailable("tables", "they cannot be read and are made anew", retry_after=3) from exc
            raise

    async def _query(self, statement: _Statement[T], views: Mapping[str, Layers], owner: str) -> list[T]:
        """Wait for a turn and run."""
        if (waiting := self._turns.waiting_of(owner)) >= self._settings.waiting_limit:
            raise Unavailable("queries", f"{waiting} are waiting", retry_after=4)
        async with self._turns.turn(owner):
            return await self._run(statement, views)

    async def _run(self, statement: _Statement[T], views: Mapping[str, Layers]) -> list[T]:
        connection = self._free.pop()
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, connection.rows, statement, views)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._settings.timeout_seconds)
        except TimeoutError as exc:
            raise Unavailable("queries", f"not done after {self._settings.timeout_seconds:g} s") from exc
        except duckdb.OutOfMemoryException as exc:
            raise Unavailable("queries", "the memory for all of them is used up", retry_after=4) from exc
        finally:
            await self._return(connection, running)

    async def _return(self, connection: _Connection, running: asyncio.Future[Any]) -> None:
        """Give the connection back once nothing runs on it, interrupting what is not wanted any more."""
        while not running.done():
            connection.interrupt()  # has no effect on a statement that is just about to start
            await asyncio.wait([running], timeout=_INTERRUPT_SECONDS)
        running.exception()
        self._free.append(connection)


class _CopiesFolder:
    """A folder of this process's own for copies of rows; those of processes that died are removed."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._own: tuple[Path, int] | None = None

    def new_path(self) -> Path:
        if self._own is None:
            self._parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self._parent)
            self._own = own_folder(self._parent)
        self._own[0].mkdir(parents=True, exist_ok=True)  # somebody may have deleted it
        return self._own[0] / f"{os.urandom(8).hex()}.parquet"

    def close(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own[0], ignore_errors=True)
            os.close(self._own[1])


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Statement(Generic[T]):
    """What is asked, and what becomes of each row."""

    sql: str
    params: dict[str, object]
    shape: Callable[[Row], T]


def _as_it_is(row: Row) -> Row:
    return row


class _Connection:
    """One connection, with the views it has."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._views: dict[str, Layers] = {}

    def interrupt(self) -> None:
        self._cursor.interrupt()

    def rows(self, statement: _Statement[T], views: Mapping[str, Layers]) -> list[T]:
        for name, layers in views.items():
            if self._views.get(name) != layers:
                self._cursor.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {_source(_TABLES[name], layers)}")
                self._views[name] = layers
        found = self._cursor.execute(statement.sql, statement.params or None)
        names = [column[0] for column in found.description or ()]
        shaped: list[T] = []
        while some := found.fetchmany(_ROWS_AT_ONCE):
            shaped += [statement.shape(dict(zip(names, row, strict=True))) for row in some]
        return shaped


def _source(table: Table, layers: Layers) -> str:
    reads = [f"SELECT * FROM read_parquet({literals(files)})" for files in (layers.files, layers.newer) if files]
    if layers.files and layers.newer_tasks:
        reads[0] += f" WHERE task_id NOT IN (SELECT task_id FROM read_parquet({literals(layers.newer_tasks)}))"
    if reads:
        return " UNION ALL BY NAME ".join(reads)
    return "SELECT " + ", ".join(f'NULL::{column.type} AS "{column.name}"' for column in table.columns) + " WHERE false"


def _connect(folder: Path, settings: DatabaseSettings) -> duckdb.DuckDBPyConnection:
    """Nothing but files of `folder` can be read, whatever a statement says."""
    connection = duckdb.connect(
        config={
            "memory_limit": f"{settings.memory_bytes}B",
            "threads": settings.threads,
            "temp_directory": str(folder / "spilled"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    # A file never changes, and its footer is a good part of what a short query reads.
    connection.execute("SET GLOBAL parquet_metadata_cache = true")
    # What a page of details took goes back to the system within seconds; it was kept for good, 30 MB of it.
    connection.execute("SET allocator_flush_threshold = '16MB'")
    connection.execute("SET allocator_bulk_deallocation_flush_threshold = '16MB'")
    connection.execute("SET allocator_background_threads = true")
    connection.execute(f"SET allowed_directories = {literals([folder])}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection
