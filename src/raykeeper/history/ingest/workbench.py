# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""Runs the SQL of ingest on local files: batches of segments in, sorted Parquet tables out, with bounded memory.

Guarantees: the same batches and base give the same bytes. A batch that is done stays done when the process dies.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb
import msgspec

from raykeeper.history.ingest.cleaning import clean_batch, has_torn_slice
from raykeeper.history.ingest.closing import CLOSED_SINCE, CLOSED_TASKS, closed_entities
from raykeeper.history.ingest.entities import PARTIAL_ROWS, no_cluster_events
from raykeeper.history.ingest.events import MACROS, cluster_rows, task_rows
from raykeeper.history.ingest.jobs import Batch, Gap, Merged, MergeOrder, Projected
from raykeeper.history.ingest.merging import DERIVED_ROWS, DERIVED_TASKS, merged_rows, whole_rows, with_last_state
from raykeeper.history.ingest.ranges import TaskRange, task_ranges
from raykeeper.history.ingest.sqltext import literal, literals
from raykeeper.history.tables import (
    ACTORS,
    COUNTERS,
    JOBS,
    NODES,
    TASK_LIST,
    TASK_SUMMARY,
    TASKS,
    UNFINISHED_TASKS,
    WORKERS,
    Rule,
    Table,
)

RANGES_PER_LIST_FILE = 8
"""Ranges of tasks whose narrow rows share a file: one of about 10 MB where the wide ones have 2 to 3 MB each."""
_T = TypeVar("_T")
_BAD_LINES = (duckdb.InvalidInputException, duckdb.DataError)
"""What DuckDB raises for a line it cannot read; anything else is not the line's fault."""
_FLUSH_ROWS = 10_000  # that a thread holds before it hands them to the partitions' files
_PARTIAL_ROW_GROUP = 2_048  # that each partition's file holds in memory; as few as DuckDB allows
_WIDE_ROW_GROUP = 10_240  # a page of details reads few of these
_NARROW_ROW_GROUP = 61_440

_ENTITIES = {
    NODES: ("state IS DISTINCT FROM 'DEAD'", None),
    WORKERS: ("is_alive", "node_id"),
    ACTORS: ("state IS DISTINCT FROM 'DEAD'", "node_id"),
    JOBS: ("finished_ns IS NULL", "driver_node_id"),
}
"""Tables of the cluster's things, nodes first: when a row is still open, and the column that names its node."""


@dataclass(frozen=True)
class Limits:
    """What the workbench may use."""

    memory_bytes: int = 192 << 20
    """Of DuckDB's buffers; the process needs about 80 MB more. Larger rows get up to four times as much."""
    threads: int = 2

    def raised(self) -> Iterator[tuple[int, int]]:
        """Threads and bytes to go on with each time that memory was not enough."""
        return ((1, self.memory_bytes * factor) for factor in (1, 2, 4))

    def small(self) -> Limits:
        """For the few segments that the server reads in its own process."""
        return Limits(self.memory_bytes * 2 // 3, threads=1)


class Workbench:
    """One session's ingest in one folder. Assumes that nobody else works in that folder."""

    def __init__(self, folder: Path, partition_bits: int, limits: Limits) -> None:
        self._partials = folder / f"partial-{partition_bits}"
        self._scratch = folder / "scratch"
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._partials.mkdir(parents=True, exist_ok=True)
        self._scratch.mkdir()
        self._partition_bits = partition_bits
        self._limits = limits
        self._connection = _connect(self._scratch, limits)

    def close(self) -> None:
        self._connection.close()

    def project(self, batch: Batch) -> Projected:
        """Make partial rows of a batch's events, or say what was made of it before."""
        report = self._partials / batch.name / "report.json"
        if report.exists():
            return msgspec.json.decode(report.read_bytes(), type=Projected)
        unfinished = self._scratch / batch.name
        shutil.rmtree(unfinished, ignore_errors=True)
        rows, gaps = self._project_anyhow(batch, unfinished)
        projected = Projected(batch.name, rows, tuple(sorted(gaps)))
        unfinished.mkdir(exist_ok=True)
        (unfinished / report.name).write_bytes(msgspec.json.encode(projected))
        unfinished.rename(self._partials / batch.name)
        return projected

    def merge(self, order: MergeOrder) -> Merged:
        """Write every table of the batches and the base together."""
        for table in (*_ENTITIES, TASKS, TASK_LIST, UNFINISHED_TASKS, TASK_SUMMARY, COUNTERS):
            shutil.rmtree(order.folder / table.name, ignore_errors=True)
            (order.folder / table.name).mkdir(parents=True)
        tables = {table.name: self._merge_entity(order, table) for table in _ENTITIES}
        tables[COUNTERS.name] = self._merge_counters(order)
        if order.is_partial:
            newer = self._merge_changed_tasks(order)
            return Merged(tables, self._count_tasks(order, newer), newer)
        wide = [self._merge_tasks(order, part) for part in task_ranges(order.range_bits)]
        tables[TASKS.name] = tuple(path for path in wide if path)
        tables |= self._write_lists(order, wide)
        return Merged(tables, _rows_of(self._connection, tables[TASKS.name]))

    def _project_anyhow(self, batch: Batch, into: Path) -> tuple[int, Sequence[Gap]]:
        if not has_torn_slice(batch):
            try:
                return self._project_file(batch.file, into), ()
            except (*_BAD_LINES, duckdb.IOException):  # the latter: damaged zstd
                shutil.rmtree(into, ignore_errors=True)
        cleaned, gaps = clean_batch(batch, self._scratch / f"{batch.name}.ndjson", self._fits)
        rows = self._project_file(cleaned, into)
        cleaned.unlink()
        return rows, gaps

    def _project_file(self, file: Path, into: Path) -> int:
        if not file.stat().st_size:
            return 0
        options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {_PARTIAL_ROW_GROUP}"
        tasks = task_rows("$file", self._partition_bits)
        copies = (
            f"COPY ({tasks}) TO {literal(into / 'tasks')} ({options}, PARTITION_BY (partition), OVERWRITE)",
            f"COPY ({cluster_rows('$file')}) TO {literal(into / 'cluster.parquet')} ({options})",
        )
        into.mkdir()
        return sum(self._in_enough_memory(partial(self._written, copy, file)) for copy in copies)

    def _written(self, copy: str, file: Path) -> int:
        return int(self._connection.execute(copy, {"file": str(file)}).fetchall()[0][0])

    def _in_enough_memory(self, step: Callable[[], _T]) -> _T:
        """Take a step again with one thread, then with more memory: nothing bounds the size of a row."""
        for threads, memory_bytes in self._limits.raised():
            try:
                return step()
            except duckdb.OutOfMemoryException:
                self._connection.execute(f"SET threads = {threads}; SET memory_limit = '{memory_bytes}B'")
        return step()

    def _fits(self, file: Path) -> bool:
        """Whether the very query that will read these lines can."""
        try:
            for query in (task_rows("$file", self._partition_bits), cluster_rows("$file")):
                self._connection.execute(f"CREATE OR REPLACE TEMP TABLE probe AS {query}", {"file": str(file)})
        except _BAD_LINES:
            return False
        return True

    def _partial_files(self, order: MergeOrder, pattern: str) -> list[Path]:
        return [file for batch in order.batches for file in sorted((self._partials / batch).glob(pattern))]

    def _merge_entity(self, order: MergeOrder, table: Table) -> tuple[Path, ...]:
        events = self._partial_files(order, "cluster.parquet")
        self._view("cluster_events", _read(events) if events else no_cluster_events())
        self._view("rows", f"{_empty(table)} UNION ALL BY NAME ({PARTIAL_ROWS[table]}) {_with_base(order, table)}")
        self._view("merged", merged_rows(table, "rows"))
        is_open, node_id = _ENTITIES[table]
        query = closed_entities(DERIVED_ROWS[table], is_open, node_id)
        path = self._copy(order, table, query, "000", _NARROW_ROW_GROUP)
        self._view(table.name, f"SELECT * FROM read_parquet({literal(path)})")
        return (path,)

    def _merge_counters(self, order: MergeOrder) -> tuple[Path, ...]:
        rows = [_empty(COUNTERS)]
        for pattern, is_odd in (("tasks/*/*.parquet", "0"), ("cluster.parquet", "is_odd::BIGINT")):
            if files := self._partial_files(order, pattern):
                counted = f"coalesce(event_type, '') AS event_type, 1 AS events, {is_odd} AS odd_events"
                rows.append(f"SELECT {counted} FROM ({_read(files)})")
        self._view("rows", f"{' UNION ALL BY NAME '.join(rows)} {_with_base(order, COUNTERS)}")
        return (self._copy(order, COUNTERS, merged_rows(COUNTERS, "rows"), "000", _NARROW_ROW_GROUP),)

    def _merge_tasks(self, order: MergeOrder, part: TaskRange) -> Path | None:
        """The wide rows of one range of tasks, or None where it has none."""
        events = self._partial_files(order, f"tasks/partition={part.partition(self._partition_bits)}/*.parquet")
        known = (*order.base.get(TASKS.name, ()), *order.newer.get(TASKS.name, ()))
        base = [path for path in known if part.may_overlap(path.stem)]
        sources = [_read(files, _task_columns()) for files in (events, base) if files]
        if not sources:
            return None
        in_range = f"task_id >= '{part.first}' AND task_id < '{part.end}'"
        path = self._write_tasks(order, f"SELECT * FROM ({_union(sources)}) WHERE {in_range}", part)
        if _rows_of(self._connection, [path]):
            return path
        path.unlink()
        return None

    def _write_tasks(self, order: MergeOrder, rows: str, part: TaskRange) -> Path:
        self._view("rows", rows)
        self._view("merged_tasks", with_last_state(merged_rows(TASKS, "rows")))
        query = f"WITH closed_tasks AS ({CLOSED_TASKS}) {DERIVED_TASKS}"
        return self._copy(order, TASKS, query, part.name, _WIDE_ROW_GROUP)

    def _merge_changed_tasks(self, order: MergeOrder) -> dict[str, tuple[Path, ...]]:
        """All attempts of tasks that new events, or the end of their worker or job, made different from the base's."""
        events = self._partial_files(order, "tasks/*/*.parquet")
        base = order.base[TASKS.name]
        touched = [CLOSED_SINCE.format(unfinished=_read(order.base[UNFINISHED_TASKS.name]))]
        touched += [_read(events, ["task_id"])] if events else []
        sources = [f"{_read(base, _task_columns())} WHERE task_id IN ({_union(touched)})"]
        sources += [_read(files, _task_columns()) for files in (events, order.newer.get(TASKS.name, ())) if files]
        wide = self._write_tasks(order, _union(sources), TaskRange(0, 0))
        newer = {TASKS.name: (wide,)} | self._write_lists(order, [wide])
        [counted] = newer[TASK_SUMMARY.name]
        newer[TASK_SUMMARY.name] = (counted, self._write_taken_back(order, newer))
        return newer

    def _write_taken_back(self, order: MergeOrder, newer: Mapping[str, Sequence[Path]]) -> Path:
        """The summary of the base's rows that are not read any more, with negative numbers."""
        keys = ", ".join(TASK_SUMMARY.key)
        query = (
            f"SELECT {keys}, -count(*) AS tasks FROM ({_superseded(order, newer)}) WHERE has_definition GROUP BY {keys}"
        )
        return self._copy(order, TASK_SUMMARY, query, "001", _NARROW_ROW_GROUP)

    def _count_tasks(self, order: MergeOrder, newer: Mapping[str, Sequence[Path]]) -> int:
        found = self._connection.execute(f"SELECT count(*) FROM ({_superseded(order, newer)})").fetchall()
        known, changed = (_rows_of(self._connection, files) for files in (order.base[TASKS.name], newer[TASKS.name]))
        return known + changed - int(found[0][0])

    def _write_lists(self, order: MergeOrder, wide: Sequence[Path | None]) -> dict[str, tuple[Path, ...]]:
        lists: dict[str, list[Path]] = {TASK_LIST.name: [], UNFINISHED_TASKS.name: []}
        for start in range(0, len(wide), RANGES_PER_LIST_FILE):
            files = [path for path in wide[start : start + RANGES_PER_LIST_FILE] if path]
            if not files:
                continue
            name = f"{start // RANGES_PER_LIST_FILE:03d}"
            for table, condition in ((TASK_LIST, "true"), (UNFINISHED_TASKS, "state IS DISTINCT FROM 'FINISHED'")):
                query = f"{_read(files, table.column_names)} WHERE {condition}"
                lists[table.name].append(self._copy(order, table, query, name, _NARROW_ROW_GROUP))
        return {name: tuple(paths) for name, paths in lists.items()} | {
            TASK_SUMMARY.name: self._write_summary(order, [path for path in wide if path])
        }

    def _write_summary(self, order: MergeOrder, wide: Sequence[Path]) -> tuple[Path, ...]:
        if not wide:
            return ()
        keys = ", ".join(TASK_SUMMARY.key)
        source = f"read_parquet({literals(wide)}) WHERE has_definition"
        query = f"SELECT {keys}, count(*) AS tasks FROM {source} GROUP BY {keys}"
        return (self._copy(order, TASK_SUMMARY, query, "000", _NARROW_ROW_GROUP),)

    def _copy(self, order: MergeOrder, table: Table, query: str, name: str, row_group: int) -> Path:
        path = order.folder / table.name / f"{name}.parquet"
        statement = (
            f"COPY ({whole_rows(table, query)}) TO {literal(path)} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {row_group})"
        )
        needs_end = "$cluster_end_ns" in statement
        parameters = {"cluster_end_ns": order.cluster_end_ns} if needs_end else None
        self._in_enough_memory(lambda: self._connection.execute(statement, parameters))
        return path

    def _view(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")


def _connect(scratch: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        config={
            "memory_limit": f"{limits.memory_bytes}B",
            "threads": limits.threads,
            "temp_directory": str(scratch / "spilled"),
            "preserve_insertion_order": False,  # what is sorted stays so; the rest needs less memory
            "partitioned_write_flush_threshold": _FLUSH_ROWS,
            "autoinstall_known_extensions": False,
        }
    )
    connection.execute(MACROS)
    return connection


def _superseded(order: MergeOrder, newer: Mapping[str, Sequence[Path]]) -> str:
    """The narrow rows of the base in whose place newer ones are read."""
    changed = _read(newer[TASK_LIST.name], ["task_id"])
    return f"{_read(order.base[TASK_LIST.name], TASK_LIST.column_names)} WHERE task_id IN ({changed})"


def _union(queries: Iterable[str]) -> str:
    return " UNION ALL BY NAME ".join(f"({query})" for query in queries)


def _task_columns() -> list[str]:
    return [column.name for column in TASKS.columns if column.rule is not Rule.DERIVED]


def _read(files: Sequence[Path], columns: Iterable[str] = ()) -> str:
    chosen = ", ".join(f'"{name}"' for name in columns) or "*"
    return f"SELECT {chosen} FROM read_parquet({literals(files)}, hive_partitioning = false)"


def _with_base(order: MergeOrder, table: Table) -> str:
    files = order.base.get(table.name, ())
    names = [column.name for column in table.columns if column.rule is not Rule.DERIVED]
    return f"UNION ALL BY NAME ({_read(files, names)})" if files else ""


def _empty(table: Table) -> str:
    """No row, but every column of the table in its type."""
    columns = (column for column in table.columns if column.rule is not Rule.DERIVED)
    return "SELECT " + ", ".join(f'NULL::{column.type} AS "{column.name}"' for column in columns) + " WHERE false"


def _rows_of(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> int:
    if not files:
        return 0
    rows = connection.execute(f"SELECT count(*) FROM read_parquet({literals(files)})").fetchall()
    return int(rows[0][0])
