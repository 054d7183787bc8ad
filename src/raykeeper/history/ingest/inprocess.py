"""The workbench in this process, on a thread: for the few new segments of a session that is looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path

from raykeeper.history.ingest.jobs import Batch, Merged, MergeOrder, Projected
from raykeeper.history.ingest.workbench import Limits, Workbench


class InProcessWorkbench:
    """A `Workbench` called from asyncio."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @classmethod
    async def start(cls, folder: Path, partition_bits: int, limits: Limits) -> InProcessWorkbench:
        return cls(await asyncio.to_thread(Workbench, folder, partition_bits, limits))

    async def project(self, batch: Batch) -> Projected:
        return await asyncio.to_thread(self._bench.project, batch)

    async def merge(self, order: MergeOrder) -> Merged:
        return await asyncio.to_thread(self._bench.merge, order)

    async def close(self) -> None:
        await asyncio.to_thread(self._bench.close)
