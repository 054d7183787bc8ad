"""The workbench gives the same bytes each time, and gets through with little memory."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import duckdb
import pytest

from bench.sessions import SessionSpec, segments
from raykeeper.history.ingest.database import IngestDatabase
from raykeeper.history.ingest.messages import Batch, Merged, MergeRequest, Projected
from raykeeper.history.ingest.worker import IngestWorker, Limits, WorkerInProcess
from support.ingest_scene import finished_task, read_rows, segment, task_id

MB = 1 << 20


def made(folder: Path, batches: list[bytes], limits: Limits, bits: int = 2) -> Merged:
    bench = IngestWorker(folder / "work", bits, limits)
    names = []
    for number, data in enumerate(batches):
        file = folder / f"{number}.zst"
        file.write_bytes(data)
        names.append(bench.project(Batch(f"batch-{number}", file, ())).name)
    merged = bench.merge(MergeRequest(folder / "tables", tuple(names), bits))
    bench.close()
    return merged


def bytes_of(merged: Merged) -> dict[str, list[bytes]]:
    return {table: [file.read_bytes() for file in files] for table, files in merged.tables.items()}


class BusyWorker(IngestWorker):
    """Makes rows of a batch for ever."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 2, Limits(threads=1))
        self.told = list[str]()
        self.is_busy = threading.Event()

    def project(self, batch: Batch) -> Projected:
        self.is_busy.set()
        try:
            self._database.execute("SELECT sum(hash(range)) FROM range(1_000_000_000_000)")
        except duckdb.InterruptException:
            self.told.append("interrupted")
            raise
        return super().project(batch)

    def close(self) -> None:
        self.told.append("closed")
        super().close()


async def test_a_database_is_not_closed_while_a_cancelled_ingest_is_busy_in_it(tmp_path: Path) -> None:
    busy = BusyWorker(tmp_path)
    worker = WorkerInProcess(busy)
    ingest = asyncio.create_task(worker.project(Batch("batch", tmp_path / "none", ())))
    await asyncio.to_thread(busy.is_busy.wait)
    ingest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ingest
    async with asyncio.timeout(60):
        await worker.close()
    assert busy.told == ["interrupted", "closed"]


def test_the_same_events_give_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    data = [packed for _, packed in segments(SessionSpec(3000))]
    for name in ("one", "two", "otherwise"):
        (tmp_path / name).mkdir()
    one = made(tmp_path / "one", data, Limits(threads=1))
    assert one.tasks == 3000
    assert bytes_of(made(tmp_path / "two", data, Limits(threads=4))) == bytes_of(one)
    otherwise = made(tmp_path / "otherwise", [b"".join(reversed(data))], Limits(threads=2))
    assert read_rows(otherwise.tables["tasks"]) == read_rows(one.tables["tasks"])


def test_a_step_that_needs_more_memory_gets_it(tmp_path: Path) -> None:
    short = Limits(memory_bytes=40 * MB, threads=2)
    data = segment(item for number in range(500) for item in finished_task(number))
    assert made(tmp_path, [data], short).tasks == 500


def test_a_step_that_got_more_memory_leaves_the_limits_as_they_were(tmp_path: Path) -> None:
    room = IngestDatabase(tmp_path, Limits(memory_bytes=40 * MB, threads=2))
    settings = "SELECT current_setting('threads'), current_setting('memory_limit')"
    before = room.execute(settings)
    hungry = f"COPY (SELECT list(range) AS all FROM range(3_000_000)) TO '{tmp_path}/hungry.parquet' (FORMAT parquet)"
    assert room.write(hungry) == 1
    assert room.execute(settings) == before
    room.close()


def test_ranges_may_be_coarser_than_the_partitions_of_the_batches(tmp_path: Path) -> None:
    bench = IngestWorker(tmp_path / "work", 3, Limits(threads=2))
    file = tmp_path / "batch.zst"
    file.write_bytes(segment(item for number in range(200) for item in finished_task(number)))
    bench.project(Batch("batch", file, ()))
    tasks = {
        bits: bench.merge(MergeRequest(tmp_path / f"{bits}", ("batch",), bits)).tables["tasks"] for bits in (0, 1, 3)
    }
    bench.close()
    assert {bits: len(files) for bits, files in tasks.items()} == {0: 1, 1: 2, 3: 8}
    assert [{row["task_id"] for row in read_rows(files)} for files in tasks.values()] == [
        {task_id(number) for number in range(200)}
    ] * 3


def test_memory_is_not_raised_for_ever(tmp_path: Path) -> None:
    with pytest.raises(duckdb.OutOfMemoryException):
        made(tmp_path, [segment(finished_task(1))], Limits(memory_bytes=5 * MB))


def test_files_of_tasks_are_sorted_by_job_and_the_list_by_task(tmp_path: Path) -> None:
    data = segment(item for number in range(300) for item in finished_task(number, job=number % 3 + 1))
    tables = made(tmp_path, [data], Limits(threads=2)).tables
    for file in tables["tasks"]:
        keys = [(row["job_id"], row["task_id"]) for row in read_rows([file])]
        assert keys == sorted(keys)
    listed = [row["task_id"] for row in read_rows(tables["task_list"])]
    assert listed == sorted(listed)
    assert len(listed) == 300
