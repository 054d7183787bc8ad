# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""From partial rows and earlier tables to new tables: everything anew, or only the tasks that changed.

What never ended is closed when its cluster did.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from raykeeper.history.ingest.batches import TaskRange, task_ranges
from raykeeper.history.ingest.database import IngestDatabase, literal, literals
from raykeeper.history.ingest.merge_sql import (
    CREATING_COLUMNS,
    CREATING_TASKS,
    DERIVED_ROWS,
    DERIVED_TASKS,
    PARTIAL_ROWS,
    merged_rows,
    no_cluster_events,
    whole_rows,
    with_last_state,
)
from raykeeper.history.ingest.messages import Merged, MergeRequest
from raykeeper.history.ingest.tables import (
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

_WORKER_EXIT_TYPES = ("SYSTEM_ERROR", "INTENDED_SYSTEM_EXIT", "USER_ERROR", "INTENDED_USER_EXIT", "NODE_OUT_OF_MEMORY")
"""In the order of Ray's enum: its GCS writes the number into a task's error."""


_EXIT_NUMBER = f"list_position({list(_WORKER_EXIT_TYPES)}, workers.exit_type) - 1"

CLOSED_TASKS = f"""
SELECT tasks.*,
    CASE
        WHEN tasks.finished_ns IS NOT NULL OR failed_ns IS NOT NULL OR last_state IS NULL THEN NULL
        WHEN workers.end_ns IS NOT NULL THEN 'worker'
        WHEN jobs.finished_ns IS NOT NULL THEN 'job'
        WHEN $cluster_end_ns::BIGINT IS NOT NULL THEN 'cluster'
    END AS closed_by,
    CASE closed_by
        WHEN 'worker' THEN workers.end_ns WHEN 'job' THEN jobs.finished_ns WHEN 'cluster' THEN $cluster_end_ns::BIGINT
    END AS closed_ns,
    CASE WHEN closed_by IN ('worker', 'job') THEN 'FAILED' END AS closed_state,
    CASE WHEN closed_by IN ('worker', 'job') THEN 'WORKER_DIED' END AS closed_error_type,
    CASE closed_by
        WHEN 'worker' THEN 'Worker running the task (' || tasks.worker_id || ') died with exit_type: '
            || coalesce({_EXIT_NUMBER}, 0) || ' with error_message: ' || coalesce(workers.exit_detail, '')
        WHEN 'job' THEN 'Job finishes (' || tasks.job_id
            || ') as driver exits. Marking all non-terminal tasks as failed.'
    END AS closed_message
FROM merged_tasks AS tasks
LEFT JOIN (SELECT worker_id, end_ns, exit_type, exit_detail FROM workers WHERE end_ns IS NOT NULL) AS workers
    ON workers.worker_id = tasks.worker_id
LEFT JOIN (SELECT job_id, finished_ns FROM jobs WHERE finished_ns IS NOT NULL) AS jobs
    ON jobs.job_id = tasks.job_id
"""
"""Over `merged_tasks` (with `last_state`), and the tables `workers` and `jobs`."""


CLOSED_SINCE = """
SELECT task_id FROM ({unfinished}) AS open
WHERE state NOT IN ('FINISHED', 'FAILED') AND (
    worker_id IN (SELECT worker_id FROM workers WHERE end_ns IS NOT NULL)
    OR job_id IN (SELECT job_id FROM jobs WHERE finished_ns IS NOT NULL)
)
"""
"""Over unfinished tasks and the tables `workers` and `jobs`: tasks that were open and are not any more."""


def _closed_entities(derived: str, is_open: str, node_id: str | None = None) -> str:
    """A query: derived rows with what closed the open ones: their node's death, or the cluster's end."""
    if node_id is None:
        end = f"CASE WHEN {is_open} THEN $cluster_end_ns::BIGINT END"
        return f"""SELECT found.*, {end} AS closed_ns, CASE WHEN closed_ns IS NOT NULL THEN 'cluster' END AS closed_by
FROM ({derived}) AS found"""
    return f"""SELECT found.*,
    CASE WHEN {is_open} THEN coalesce(dead.end_ns, $cluster_end_ns::BIGINT) END AS closed_ns,
    CASE WHEN closed_ns IS NULL THEN NULL WHEN dead.end_ns IS NOT NULL THEN 'node' ELSE 'cluster' END AS closed_by
FROM ({derived}) AS found
LEFT JOIN (SELECT node_id, end_ns FROM nodes WHERE end_ns IS NOT NULL) AS dead ON dead.node_id = found.{node_id}"""


RANGES_PER_LIST_FILE = 8
"""Ranges of tasks whose narrow rows share a file: one of about 10 MB where the wide ones have 2 to 3 MB each."""
_WIDE_ROW_GROUP = 10_240  # a page of details reads few of these
_NARROW_ROW_GROUP = 20_480  # a first page reads one of them; smaller ones make footers that cost more than they save

_ENTITIES = {
    NODES: ("state IS DISTINCT FROM 'DEAD'", None),
    WORKERS: ("is_alive", "node_id"),
    ACTORS: ("state IS DISTINCT FROM 'DEAD'", "node_id"),
    JOBS: ("finished_ns IS NULL", "driver_node_id"),
}
"""Tables of the cluster's things, nodes first: when a row is still open, and the column that names its node."""


class TableMerger:
    """Merges what a projector left; `workers` and `jobs` are views once they are merged, for closing tasks."""

    def __init__(self, database: IngestDatabase, partials: Path, partition_bits: int) -> None:
        self._database = database
        self._partials = partials
        self._partition_bits = partition_bits

    def merge(self, order: MergeRequest) -> Merged:
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
        return Merged(tables, self._database.count(tables[TASKS.name]))

    def _partial_files(self, order: MergeRequest, pattern: str) -> list[Path]:
        return [file for batch in order.batches for file in sorted((self._partials / batch).glob(pattern))]

    def _merge_entity(self, order: MergeRequest, table: Table) -> tuple[Path, ...]:
        events = self._partial_files(order, "cluster.parquet")
        self._database.view("cluster_events", _read(events) if events else no_cluster_events())
        found = _union([_empty(table), PARTIAL_ROWS[table], *self._creating_tasks(order, table)])
        self._database.view("rows", f"{found} {_with_base(order, table)}")
        self._database.view("merged", merged_rows(table, "rows"))
        is_open, node_id = _ENTITIES[table]
        query = _closed_entities(DERIVED_ROWS[table], is_open, node_id)
        path = self._copy(order, table, query, "000", _NARROW_ROW_GROUP)
        self._database.view(table.name, f"SELECT * FROM read_parquet({literal(path)})")
        return (path,)

    def _creating_tasks(self, order: MergeRequest, table: Table) -> Iterator[str]:
        """Queries for what only the tasks that make actors tell of them; their ids are the highest of all."""
        highest = (1 << self._partition_bits) - 1
        files = self._partial_files(order, f"tasks/partition={highest}/*.parquet") if table is ACTORS else []
        if files:
            yield CREATING_TASKS.format(tasks=_read(files, CREATING_COLUMNS))

    def _merge_counters(self, order: MergeRequest) -> tuple[Path, ...]:
        rows = [_empty(COUNTERS)]
        for pattern, is_odd in (("tasks/*/*.parquet", "0"), ("cluster.parquet", "is_odd::BIGINT")):
            if files := self._partial_files(order, pattern):
                counted = f"coalesce(event_type, '') AS event_type, 1 AS events, {is_odd} AS odd_events"
                rows.append(f"SELECT {counted} FROM ({_read(files)})")
        self._database.view("rows", f"{' UNION ALL BY NAME '.join(rows)} {_with_base(order, COUNTERS)}")
        return (self._copy(order, COUNTERS, merged_rows(COUNTERS, "rows"), "000", _NARROW_ROW_GROUP),)

    def _merge_tasks(self, order: MergeRequest, part: TaskRange) -> Path | None:
        """The wide rows of one range of tasks, or None where it has none."""
        folders = [f"tasks/partition={number}" for number in part.partitions(self._partition_bits)]
        events = [file for folder in folders for file in self._partial_files(order, f"{folder}/*.parquet")]
        known = (*order.base.get(TASKS.name, ()), *order.newer.get(TASKS.name, ()))
        base = [path for path in known if part.may_overlap(path.stem)]
        sources = [_read(files, _task_columns()) for files in (events, base) if files]
        if not sources:
            return None
        in_range = f"task_id >= '{part.first}' AND task_id < '{part.end}'"
        path = self._write_tasks(order, f"SELECT * FROM ({_union(sources)}) WHERE {in_range}", part)
        if self._database.count([path]):
            return path
        path.unlink()
        return None

    def _write_tasks(self, order: MergeRequest, rows: str, part: TaskRange) -> Path:
        self._database.view("rows", rows)
        self._database.view("merged_tasks", with_last_state(merged_rows(TASKS, "rows")))
        query = f"WITH closed_tasks AS ({CLOSED_TASKS}) {DERIVED_TASKS}"
        return self._copy(order, TASKS, query, part.name, _WIDE_ROW_GROUP)

    def _merge_changed_tasks(self, order: MergeRequest) -> dict[str, tuple[Path, ...]]:
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

    def _write_taken_back(self, order: MergeRequest, newer: Mapping[str, Sequence[Path]]) -> Path:
        """The summary of the base's rows that are not read any more, with negative numbers."""
        keys = ", ".join(TASK_SUMMARY.key)
        source = f"({_superseded(order, newer)}) WHERE has_definition"
        query = f"SELECT {keys}, -count(*) AS number FROM {source} GROUP BY {keys}"
        return self._copy(order, TASK_SUMMARY, query, "001", _NARROW_ROW_GROUP)

    def _count_tasks(self, order: MergeRequest, newer: Mapping[str, Sequence[Path]]) -> int:
        found = self._database.execute(f"SELECT count(*) FROM ({_superseded(order, newer)})")
        known, changed = (self._database.count(files) for files in (order.base[TASKS.name], newer[TASKS.name]))
        return known + changed - int(found[0][0])

    def _write_lists(self, order: MergeRequest, wide: Sequence[Path | None]) -> dict[str, tuple[Path, ...]]:
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

    def _write_summary(self, order: MergeRequest, wide: Sequence[Path]) -> tuple[Path, ...]:
        if not wide:
            return ()
        keys = ", ".join(TASK_SUMMARY.key)
        source = f"read_parquet({literals(wide)}) WHERE has_definition"
        query = f"SELECT {keys}, count(*) AS number FROM {source} GROUP BY {keys}"
        return (self._copy(order, TASK_SUMMARY, query, "000", _NARROW_ROW_GROUP),)

    def _copy(self, order: MergeRequest, table: Table, query: str, name: str, row_group: int) -> Path:
        path = order.folder / table.name / f"{name}.parquet"
        statement = (
            f"COPY ({whole_rows(table, query)}) TO {literal(path)} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {row_group})"
        )
        needs_end = "$cluster_end_ns" in statement
        parameters = {"cluster_end_ns": order.cluster_end_ns} if needs_end else None
        self._database.write(statement, parameters)
        return path


def _superseded(order: MergeRequest, newer: Mapping[str, Sequence[Path]]) -> str:
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


def _with_base(order: MergeRequest, table: Table) -> str:
    files = order.base.get(table.name, ())
    names = [column.name for column in table.columns if column.rule is not Rule.DERIVED]
    return f"UNION ALL BY NAME ({_read(files, names)})" if files else ""


def _empty(table: Table) -> str:
    """No row, but every column of the table in its type."""
    columns = (column for column in table.columns if column.rule is not Rule.DERIVED)
    return "SELECT " + ", ".join(f'NULL::{column.type} AS "{column.name}"' for column in columns) + " WHERE false"
