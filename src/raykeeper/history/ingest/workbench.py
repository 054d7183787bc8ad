"""Runs the SQL of ingest on local files: batches of segments in, sorted Parquet tables out, with bounded memory.

Guarantees: the same batches, in the same order, and the same base give the same bytes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from raykeeper.history.ingest.jobs import Batch, Merged, MergeOrder, Projected
from raykeeper.history.ingest.projecting import Projector
from raykeeper.history.ingest.room import Limits, Room
from raykeeper.history.ingest.tablemerger import TableMerger

__all__ = ["Limits", "Workbench"]


class Workbench:
    """One session's ingest in one folder. Assumes that nobody else works in that folder."""

    def __init__(self, folder: Path, partition_bits: int, limits: Limits) -> None:
        partials, scratch = folder / f"partial-{partition_bits}", folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        partials.mkdir(exist_ok=True)
        self._room = Room(scratch, limits)
        self._projector = Projector(self._room, partials, scratch, partition_bits)
        self._merger = TableMerger(self._room, partials, partition_bits)

    def close(self) -> None:
        self._room.close()

    def project(self, batch: Batch) -> Projected:
        """Make partial rows of a batch's events, or say what was made of it before."""
        return self._projector.project(batch)

    def merge(self, order: MergeOrder) -> Merged:
        """Write every table of the batches and the base together."""
        return self._merger.merge(order)
