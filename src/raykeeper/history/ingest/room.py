# ruff: noqa: S608 - statements are made of the tables' own names and of paths; values are bound
"""DuckDB with the limits of ingest: views, statements, and files written in as much memory as they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from raykeeper.history.ingest.events import MACROS
from raykeeper.history.ingest.sqltext import literals

_FLUSH_ROWS = 10_000  # that a thread holds before it hands them to the partitions' files


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


class Room:
    """One connection that spills into a folder of its own."""

    def __init__(self, scratch: Path, limits: Limits) -> None:
        self._limits = limits
        self._connection = _connect(scratch, limits)

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()

    def view(self, name: str, query: str) -> None:
        self.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def write(self, copy: str, parameters: Mapping[str, object] | None = None) -> int:
        """Rows that a COPY wrote; again with one thread, then with more memory: nothing bounds the size of a row."""
        for threads, memory_bytes in self._limits.raised():
            try:
                return int(self.execute(copy, parameters)[0][0])
            except duckdb.OutOfMemoryException:
                self.execute(f"SET threads = {threads}; SET memory_limit = '{memory_bytes}B'")
        return int(self.execute(copy, parameters)[0][0])

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
            "partitioned_write_flush_threshold": _FLUSH_ROWS,
            "autoinstall_known_extensions": False,
        }
    )
    connection.execute(MACROS)
    return connection
