"""History under its everyday load: fifty people with a dashboard open, which asks again every four seconds."""

from __future__ import annotations

import asyncio
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from bench.figures import Figure
from bench.history_server import Bucket, a_bucket, a_history_server
from bench.resources import cpu_seconds, peak_mb
from bench.sessions import SessionSpec, write_session

USERS, SESSIONS, TASKS = 50, 20, 10_000
REFRESH_SECONDS = 4.0  # of Ray's dashboard
MEASURED_SECONDS = 60.0
PAGES = (
    ("api/jobs/", "api/cluster_status?format=1", "api/v0/tasks/summarize"),
    ("nodes?view=summary",),
    ("logical/actors",),
    ("api/v0/tasks?detail=1&limit=10000&filter_keys=job_id&filter_predicates=%3D&filter_values=01000000",),
    ("api/v0/tasks?limit=100&filter_keys=state&filter_predicates=%3D&filter_values=FAILED",),
)
"""What the pages of the dashboard ask for at each refresh: overview, cluster, actors, a job's tasks, failed tasks."""


def run() -> Iterator[Figure]:
    """Each user stays on one page of one session; users are spread evenly over pages and sessions."""
    with a_bucket("users") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_measure(bucket, Path(cache)))


async def _measure(bucket: Bucket, cache: Path) -> list[Figure]:
    specs = [SessionSpec(TASKS, cluster=f"users-{number}") for number in range(SESSIONS)]
    store = bucket.open()
    for spec in specs:
        await write_session(store, spec)
    async with a_history_server(bucket, cache) as server:
        for spec in specs:
            await server.ask(spec, "api/v0/tasks?limit=1")
        before = cpu_seconds(server.pid)
        took, answered = await _visits(server.http, specs)
        cpu = (cpu_seconds(server.pid) - before) / MEASURED_SECONDS * 100
        return _figures(sorted(took), answered, cpu, peak_mb(server.pid))


def _figures(took: list[float], answered: Counter[int], cpu: float, memory: float) -> list[Figure]:
    p95 = took[math.ceil(len(took) * 0.95) - 1] * 1000
    baseline = f"{len(took)} requests, median {took[len(took) // 2] * 1000:.0f} ms, {cpu:.0f} % of a core"
    refused = sum(count for status, count in answered.items() if status != 200)
    return [
        Figure("50 users on 20 sessions, p95", p95, "ms", 300, "less", baseline),
        Figure("50 users on 20 sessions, refused or failed", refused, "answers", 0, "less", f"peak {memory:.0f} MB"),
    ]


async def _visits(http: aiohttp.ClientSession, specs: list[SessionSpec]) -> tuple[list[float], Counter[int]]:
    took: list[float] = []
    answered: Counter[int] = Counter()
    until = time.monotonic() + MEASURED_SECONDS

    async def visit(user: int) -> None:
        await asyncio.sleep(random.Random(user).uniform(0, REFRESH_SECONDS))
        while (began := time.monotonic()) < until:
            for path in PAGES[user % len(PAGES)]:
                asked = time.monotonic()
                answered[await _ask(http, specs[user % SESSIONS], path)] += 1
                took.append(time.monotonic() - asked)
            await asyncio.sleep(max(0.0, began + REFRESH_SECONDS - time.monotonic()))

    await asyncio.gather(*(visit(user) for user in range(USERS)))
    return took, answered


async def _ask(http: aiohttp.ClientSession, spec: SessionSpec, path: str) -> int:
    async with http.get(f"/s/{spec.id}/{path}") as answer:
        await answer.read()
        return answer.status
