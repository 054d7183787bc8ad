"""From a batch of segments to partial rows on disk. A batch that is done stays done when the process dies."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import msgspec

from raykeeper.history.ingest.cleaning import clean_batch, has_torn_slice
from raykeeper.history.ingest.events import CLUSTER_PARTITION, cluster_rows, event_rows
from raykeeper.history.ingest.jobs import Batch, Gap, Projected
from raykeeper.history.ingest.room import Room
from raykeeper.history.ingest.sqltext import literal

_BAD_LINES = (duckdb.InvalidInputException, duckdb.DataError)
"""What DuckDB raises for a line it cannot read; anything else is not the line's fault."""
_PARTIAL_ROW_GROUP = 2_048  # that each partition's file holds in memory; as few as DuckDB allows


class Projector:
    """Writes each batch's partial rows into a folder of its name, tasks parted by the first bits of their ids."""

    def __init__(self, room: Room, partials: Path, scratch: Path, partition_bits: int) -> None:
        self._room = room
        self._partials = partials
        self._scratch = scratch
        self._partition_bits = partition_bits

    def project(self, batch: Batch) -> Projected:
        """Make partial rows of a batch's events, or say what was made of it before."""
        report = self._partials / batch.name / "report.json"
        if report.exists():
            return msgspec.json.decode(report.read_bytes(), type=Projected)
        unfinished = self._scratch / batch.name
        shutil.rmtree(unfinished, ignore_errors=True)
        rows, gaps = self._project_anyhow(batch, unfinished)
        projected = Projected(batch.name, rows, tuple(sorted(gaps)))
        (unfinished / report.name).write_bytes(msgspec.json.encode(projected))
        unfinished.rename(self._partials / batch.name)
        return projected

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
        into.mkdir()
        if not file.stat().st_size:
            return 0
        options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {_PARTIAL_ROW_GROUP}"
        events = f"COPY ({event_rows('$file', self._partition_bits)}) TO {literal(into / 'tasks')} "
        rows = self._room.write(f"{events} ({options}, PARTITION_BY (partition), OVERWRITE)", {"file": str(file)})
        about_cluster = into / "tasks" / f"partition={CLUSTER_PARTITION}"
        if about_cluster.exists():
            query = cluster_rows(f"read_parquet({literal(about_cluster / '*.parquet')}, hive_partitioning = false)")
            self._room.write(f"COPY ({query}) TO {literal(into / 'cluster.parquet')} ({options})")
            shutil.rmtree(about_cluster)
        return rows

    def _fits(self, file: Path) -> bool:
        """Whether the very query that will read these lines can."""
        try:
            query = event_rows("$file", self._partition_bits)
            self._room.execute(f"CREATE OR REPLACE TEMP TABLE probe AS {query}", {"file": str(file)})
        except _BAD_LINES:
            return False
        return True
