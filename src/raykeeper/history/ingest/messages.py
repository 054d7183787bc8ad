"""Requests to the ingest worker and its answers: small structs that can be sent to another process."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Slice(msgspec.Struct, frozen=True):
    """One segment within a batch's file."""

    key: str
    offset: int
    size: int


class Batch(msgspec.Struct, frozen=True):
    """Some segments, one after the other in one local file (zstd frames may be joined as they are)."""

    name: str
    file: Path
    slices: tuple[Slice, ...]


class Gap(msgspec.Struct, frozen=True, order=True):
    """Something that should be in the tables and is not."""

    key: str
    """Of the object it was in."""
    lines: int
    """How many lines are known to be missing; 0 where nobody can tell."""
    reason: str


class Projected(msgspec.Struct, frozen=True):
    """What became of a batch."""

    name: str
    rows: int
    gaps: tuple[Gap, ...] = ()


class MergeRequest(msgspec.Struct, frozen=True):
    """Merge all batches with the tables that are there already."""

    folder: Path
    """Where the tables are written to."""
    batches: tuple[str, ...]
    range_bits: int
    """Tasks are merged in 2^bits ranges of task ids, one after the other."""
    base: dict[str, tuple[Path, ...]] = {}
    newer: dict[str, tuple[Path, ...]] = {}
    """Rows of tasks that supersede those of the base, from earlier merges of this kind."""
    cluster_end_ns: int | None = None
    is_partial: bool = False
    """Leave the base's tasks as they are and write only those that changed since, to be read instead."""


class Merged(msgspec.Struct, frozen=True):
    """The files of each table, in order."""

    tables: dict[str, tuple[Path, ...]]
    tasks: int
    """Attempts, with or without a definition."""
    newer: dict[str, tuple[Path, ...]] = {}
    """Of a partial merge: tasks to be read instead of the base's, which `tables` then leaves out."""
