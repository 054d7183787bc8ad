# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""DuckDB with the limits of ingest: views, statements, and files written in as much memory as they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from raykeeper.history.ingest.events_sql import MACROS


def literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def literals(paths: Iterable[Path]) -> str:
    return f"[{', '.join(map(literal, paths))}]"


_SCALE_BYTES = 96 << 20  # that the rows of another 4 MB of segments take


@dataclass(frozen=True)
class Limits:
    """What the workbench may use."""

    memory_bytes: int = 232 << 20
    """Of DuckDB's buffers: of them, 95 MB for each thread that reads events, and the rows of one batch.
    The process needs about 40 MB more. Larger rows get up to four times as much."""
    threads: int = 2

    def scaled(self, scale: int) -> Limits:
        """For batches and ranges that are so many times larger."""
        return Limits(self.memory_bytes + (scale - 1) * _SCALE_BYTES, self.threads)

    def raised(self) -> Iterator[Limits]:
        """What to go on with each time that memory was not enough."""
        return (Limits(self.memory_bytes * factor, threads=1) for factor in (1, 2, 4))

    def small(self) -> Limits:
        """For the few segments that the server reads in its own process."""
        return Limits(self.memory_bytes * 5 // 9, threads=1)


class IngestDatabase:
    """One connection that spills into a folder of its own."""

    def __init__(self, scratch: Path, limits: Limits) -> None:
        self._limits = limits
        self._connection = _connect(scratch, limits)

    def close(self) -> None:
        self._connection.close()

    def interrupt(self) -> None:
        """End the statement that runs, if one does; from any thread."""
        self._connection.interrupt()

    def execute(self, statement: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()

    def view(self, name: str, query: str) -> None:
        self.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def write(self, copy: str, parameters: Mapping[str, object] | None = None) -> int:
        """Rows that a COPY wrote; again with one thread, then with more memory: nothing bounds the size of a row."""
        try:
            return self._rows_written(copy, parameters)
        except duckdb.OutOfMemoryException as exc:
            return self._write_with_more(copy, parameters, exc)

    def _write_with_more(
        self, copy: str, parameters: Mapping[str, object] | None, failure: duckdb.OutOfMemoryException
    ) -> int:
        try:
            for limits in self._limits.raised():
                self._allow(limits)
                try:
                    return self._rows_written(copy, parameters)
                except duckdb.OutOfMemoryException as exc:
                    failure = exc
            raise failure
        finally:
            self._allow(self._limits)  # the next step may be a small one, and faster on all threads

    def _rows_written(self, copy: str, parameters: Mapping[str, object] | None) -> int:
        return int(self.execute(copy, parameters)[0][0])

    def _allow(self, limits: Limits) -> None:
        self.execute(f"SET threads = {limits.threads}; SET memory_limit = '{limits.memory_bytes}B'")

    def count(self, files: Sequence[Path]) -> int:
        """Rows of Parquet files."""
        return int(self.execute(f"SELECT count(*) FROM read_parquet({literals(files)})")[0][0]) if files else 0


def _connect(scratch: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        config={
            "memory_limit": f"{limits.memory_bytes}B",
            "threads": limits.threads,
            "temp_directory": str(scratch / "spilled"),
            "preserve_insertion_order": False,  # what is sorted stays so; the rest needs less memory
            "autoinstall_known_extensions": False,
        }
    )
    connection.execute(MACROS)
    return connection
