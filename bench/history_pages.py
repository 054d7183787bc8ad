"""History: pages of sessions that were ingested before. The first one on a cold replica, and each of them warm.

`RAYKEEPER_BENCH_TASKS=10000,200000` chooses the sizes; ten million tasks (`10000000`) take half an hour.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from bench.figures import Figure
from bench.history_ingest import chosen_sizes, ingest_elsewhere
from bench.history_server import Bucket, Server, a_bucket, a_history_server
from bench.resources import cpu_seconds, peak_mb
from bench.sessions import SessionSpec, write_session

BARS = {10_000: (0.3, 30, 200), 200_000: (0.5, 40, 400), 1_000_000: (1.0, 60, 600), 10_000_000: (4.0, 150, 1000)}
"""By tasks: seconds from a cold open to the first page, milliseconds of a warm page, MB."""
DETAILS_MS = 500
LOOKS = 40
FIRST_PAGE = "api/v0/tasks?limit=100"
JOB = "05000000"


@dataclass(frozen=True)
class Looks:
    """One page, asked for again and again."""

    name: str
    seconds: list[float]
    cpu_ms: float

    @property
    def p95_ms(self) -> float:
        return sorted(self.seconds)[math.ceil(len(self.seconds) * 0.95) - 1] * 1000


def filtered(column: str, value: str, limit: int = 100) -> str:
    filters = {"filter_keys": column, "filter_predicates": "=", "filter_values": value}
    return f"api/v0/tasks?{urlencode({'limit': limit, **filters})}"


def pages_of(task_id: str) -> dict[str, str]:
    """What the issue lists, by a name for people."""
    return {
        "tasks that failed": filtered("state", "FAILED"),
        "tasks that finished": filtered("state", "FINISHED"),
        "tasks by name": filtered("name", "step_7"),
        "one task by id": filtered("task_id", task_id),
        "summary by function": "api/v0/tasks/summarize",
        "a job's tasks": filtered("job_id", JOB),
        "jobs": "api/jobs/",
        "nodes": "nodes?view=summary",
        "actors": "logical/actors",
    }


DETAILS = f"api/v0/tasks?detail=1&limit=10000&filter_keys=job_id&filter_predicates=%3D&filter_values={JOB}"


def run() -> Iterator[Figure]:
    """Each size in a bucket of its own; another process has ingested it."""
    for size in chosen_sizes():
        with a_bucket("pages") as bucket, tempfile.TemporaryDirectory() as folder:
            spec = SessionSpec(size)
            asyncio.run(write_session(bucket.open(), spec))
            ingest_elsewhere(bucket, size)
            yield from asyncio.run(_measure(bucket, spec, Path(folder)))


async def _measure(bucket: Bucket, spec: SessionSpec, cache: Path) -> list[Figure]:
    async with a_history_server(bucket, cache) as server:
        start = time.monotonic()
        first_page = await server.ask(spec, FIRST_PAGE)
        cold = time.monotonic() - start
        found = msgspec.json.decode(first_page)["data"]["result"]
        assert found["total"] == spec.tasks, f"{found['total']} of {spec.tasks} tasks"
        pages = pages_of(found["result"][0]["task_id"])
        looks = [await _looks(server, spec, name, path) for name, path in pages.items()]
        details = await _looks(server, spec, "details of 10,000 of a job's tasks", DETAILS)
        return _figures(spec, cold, looks, details, peak_mb(server.pid))


async def _looks(server: Server, spec: SessionSpec, name: str, path: str) -> Looks:
    await server.ask(spec, path)
    before, seconds = cpu_seconds(server.pid), []
    for _ in range(LOOKS):
        start = time.monotonic()
        await server.ask(spec, path)
        seconds.append(time.monotonic() - start)
    return Looks(name, seconds, (cpu_seconds(server.pid) - before) / LOOKS * 1000)


def _figures(spec: SessionSpec, cold: float, looks: list[Looks], details: Looks, memory: float) -> list[Figure]:
    cold_bar, warm_bar, memory_bar = BARS.get(spec.tasks, (None, None, None))
    name = f"{spec.tasks:,} tasks"
    return [
        Figure(f"{name}: cold open to the first page, over HTTP", cold, "s", cold_bar),
        *(_page_figure(name, item, warm_bar) for item in looks),
        _page_figure(name, details, DETAILS_MS),
        Figure(f"{name}: most memory of the server over all pages", memory, "MB RSS", memory_bar),
    ]


def _page_figure(name: str, looks: Looks, bar: float | None) -> Figure:
    median = sorted(looks.seconds)[len(looks.seconds) // 2] * 1000
    said = f"median {median:.0f} ms, {looks.cpu_ms:.0f} ms of processor"
    return Figure(f"{name}: {looks.name}, p95", looks.p95_ms, "ms", bar, "less", said)
