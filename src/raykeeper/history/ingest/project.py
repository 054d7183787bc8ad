"""From a batch of segments to partial rows on disk. Broken lines and torn frames are left out and counted.

A batch that is done stays done when the process dies.
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import msgspec

from raykeeper.history.ingest.database import IngestDatabase, literal
from raykeeper.history.ingest.event_lines import fits as is_readable
from raykeeper.history.ingest.events_sql import CLUSTER_PARTITION, cluster_rows, event_rows
from raykeeper.history.ingest.messages import Batch, Gap, Projected, Slice
from raykeeper.layout.segments import TornSegment, read_lines, text_bound
from raykeeper.rayevents.spelling import in_usual_names

_OTHER_SPELLING = b'"event_type"'
_LINES_AT_ONCE = 512
"""Lines judged together first; most such pieces are good as a whole."""
_BYTES_AT_ONCE = 16 << 20
"""Of such lines, but for the last one: each may be as long as a line may be at all."""

_TRIES = 60
"""Of pieces of one batch, where types were not enough to tell bad lines. Each takes some milliseconds."""
_USUAL_RATIO = 40
"""Of text to its zstd. Ray's events have 12; a batch of more was made to be large, and is read with care."""
_SMALL_TEXT_BYTES = 16 << 20  # is no trouble, whatever its ratio
CLEANED_BYTES = 256 << 20
"""Of text, and"""
CLEANED_LINES = 200_000
"""of lines of a batch that is read with care; DuckDB needs memory and time for each. The rest is left out, and told."""

Fits = Callable[[Path], bool]


def _needs_cleaning(batch: Batch) -> bool:
    """Whether a segment of the batch is cut, which DuckDB would take for its end, or the batch may hold too much."""
    size = batch.file.stat().st_size
    if not size:
        return False
    with batch.file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        bounds = [text_bound(data, item.offset, item.offset + item.size) for item in batch.slices]
    whole = [bound for bound in bounds if bound is not None]
    return len(whole) < len(bounds) or sum(whole) > max(_SMALL_TEXT_BYTES, _USUAL_RATIO * size)


@dataclass
class _Allowance:
    """What a batch that is read with care may still hold."""

    text_bytes: int
    lines: int

    def take(self, line: bytes) -> None:
        """Count another line. Raises TornSegment where there is no room for it."""
        self.text_bytes -= len(line)
        self.lines -= 1
        if self.text_bytes < 0 or self.lines < 0:
            raise TornSegment("it holds far more text than its size lets expect, and the rest is not read")


def _clean_batch(batch: Batch, target: Path, judge: _JudgeByType) -> list[Gap]:
    """Write the batch's good lines to `target`, and say what was left out."""
    gaps: list[Gap] = []
    allowance = _Allowance(CLEANED_BYTES, CLEANED_LINES)
    with batch.file.open("rb") as source, target.open("wb") as good:
        for item in batch.slices:
            source.seek(item.offset)
            gaps += _clean_slice(item, source.read(item.size), good.write, judge, allowance)
    return gaps


class _JudgeByType:
    """Tells good lines from bad ones by their types."""

    def good_lines(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        return filter(is_readable, lines)


class _JudgeByTrial(_JudgeByType):
    """By trying them in a file of their own, too. After so many tries a piece with a bad line is left out whole."""

    def __init__(self, file: Path, fits: Fits) -> None:
        self._file = file
        self._fits = fits
        self._tries_left = _TRIES

    def good_lines(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        yield from self._tried(list(super().good_lines(lines)))

    def _tried(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        if not lines or self._tries_left <= 0:
            return
        self._tries_left -= 1
        self._file.write_bytes(b"\n".join(lines) + b"\n")
        if self._fits(self._file):
            yield from lines
        elif len(lines) > 1:
            middle = len(lines) // 2
            yield from self._tried(lines[:middle])
            yield from self._tried(lines[middle:])


def _clean_slice(
    item: Slice, data: bytes, write: Callable[[bytes], object], judge: _JudgeByType, allowance: _Allowance
) -> list[Gap]:
    bad, pending, pending_bytes = 0, list[bytes](), 0
    gaps = []

    def judged() -> int:
        good = list(judge.good_lines(pending))
        write(b"".join(line + b"\n" for line in good))
        return len(pending) - len(good)

    try:
        for line in read_lines(data):
            allowance.take(line)
            pending.append(in_usual_names(line) if _OTHER_SPELLING in line else line)
            pending_bytes += len(line)
            if len(pending) == _LINES_AT_ONCE or pending_bytes > _BYTES_AT_ONCE:
                bad += judged()
                pending.clear()
                pending_bytes = 0
    except TornSegment as exc:
        gaps.append(Gap(item.key, 0, f"damaged: {exc}"))
    bad += judged()
    if bad:
        gaps.append(Gap(item.key, bad, "lines that are no events of Ray"))
    return gaps


_BAD_LINES = (duckdb.InvalidInputException, duckdb.DataError)
"""What DuckDB raises for a line it cannot read; anything else is not the line's fault."""
_PARTIAL_ROW_GROUP = 2_048  # that each partition's file holds in memory; as few as DuckDB allows


class Projector:
    """Writes each batch's partial rows into a folder of its name, tasks parted by the first bits of their ids."""

    def __init__(self, database: IngestDatabase, partials: Path, scratch: Path, partition_bits: int) -> None:
        self._database = database
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
        if not _needs_cleaning(batch):
            try:
                return self._project_file(batch.file, into), ()
            except (*_BAD_LINES, duckdb.IOException):  # the latter: damaged zstd
                shutil.rmtree(into, ignore_errors=True)
        cleaned = self._scratch / f"{batch.name}.ndjson"
        try:
            gaps = _clean_batch(batch, cleaned, _JudgeByType())
            rows = self._project_file(cleaned, into)
        except _BAD_LINES:
            shutil.rmtree(into, ignore_errors=True)
            gaps = _clean_batch(batch, cleaned, _JudgeByTrial(cleaned.with_suffix(".piece"), self._fits))
            rows = self._project_file(cleaned, into)
        cleaned.unlink()
        return rows, gaps

    def _project_file(self, file: Path, into: Path) -> int:
        into.mkdir()
        if not file.stat().st_size:
            return 0
        options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {_PARTIAL_ROW_GROUP}"
        events = f"COPY ({event_rows('$file', self._partition_bits)}) TO {literal(into / 'tasks')} "
        rows = self._database.write(f"{events} ({options}, PARTITION_BY (partition), OVERWRITE)", {"file": str(file)})
        about_cluster = into / "tasks" / f"partition={CLUSTER_PARTITION}"
        if about_cluster.exists():
            query = cluster_rows(f"read_parquet({literal(about_cluster / '*.parquet')}, hive_partitioning = false)")
            self._database.write(f"COPY ({query}) TO {literal(into / 'cluster.parquet')} ({options})")
            shutil.rmtree(about_cluster)
        return rows

    def _fits(self, file: Path) -> bool:
        """Whether the very query that will read these lines can."""
        try:
            query = event_rows("$file", self._partition_bits)
            self._database.execute(f"CREATE OR REPLACE TEMP TABLE probe AS {query}", {"file": str(file)})
        except _BAD_LINES:
            return False
        return True
