"""The pages over many sessions: jobs and kinds of failure of ten thousand sessions that were all read to their end."""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.figures import Figure
from bench.history_server import Bucket, Server, a_bucket, a_history_server
from bench.resources import cpu_seconds, rss_mb
from bench.servers import in_parallel
from raykeeper.layout.keys import CatalogKey, CatalogPart, SessionId
from raykeeper.layout.records import CatalogEnd, CatalogStart, Record, encode_record
from raykeeper.layout.summaries import FailureSummary, HeadlineSummary, JobSummary, SessionSummary
from raykeeper.storage.store import ObjectStore

SESSIONS, DAYS, KINDS = 10_000, 100, 400
JOBS_MS, FAILURES_MS = 100, 300
LOOKS = 40
KNOWN_SECONDS = 300


def run() -> Iterator[Figure]:
    """By a server that never saw the store: while it reads the summaries in the background, and afterwards."""
    with a_bucket("lists") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_measure(bucket, Path(cache)))


async def _measure(bucket: Bucket, cache: Path) -> list[Figure]:
    store, now = bucket.open(), datetime.now(UTC)
    await in_parallel(range(SESSIONS), lambda number: _put_session(store, number, now), width=32)
    async with a_history_server(bucket, cache) as before:
        await _known(before)  # a server that was here earlier has compacted the past days
    async with a_history_server(bucket, cache) as server:
        first = {path: await _took_ms(server, path) for path in ("/", "/failures")}
        began = time.monotonic()
        await _known(server)
        known = time.monotonic() - began
        return [
            *await _warm(server, "jobs page over 10,000 sessions", "/", first["/"], JOBS_MS),
            *await _warm(server, "failures page over 10,000 sessions", "/failures", first["/failures"], FAILURES_MS),
            Figure("failures of 10,000 sessions known after", known, "s"),
            Figure("history server of 10,000 summaries, memory", rss_mb(server.pid), "MB"),
        ]


async def _warm(server: Server, name: str, path: str, first_ms: float, bar_ms: float) -> list[Figure]:
    spent = cpu_seconds(server.pid)
    warm = sorted([await _took_ms(server, path, pause=0.5) for _ in range(LOOKS)])  # looks are made anew meanwhile
    cpu_ms = (cpu_seconds(server.pid) - spent) / LOOKS * 1000
    told = f"median {warm[LOOKS // 2]:.0f} ms, {cpu_ms:.0f} ms of processor with the looks in the background"
    return [
        Figure(f"{name}, first time", first_ms, "ms", bar_ms),
        Figure(f"{name}, p95", warm[math.ceil(LOOKS * 0.95) - 1], "ms", bar_ms, baseline=told),
    ]


async def _took_ms(server: Server, path: str, pause: float = 0.0) -> float:
    await asyncio.sleep(pause)
    began = time.monotonic()
    async with server.http.get(path) as answer:
        assert answer.status == 200, f"{path}: {answer.status}"
        await answer.read()
    return (time.monotonic() - began) * 1000


async def _known(server: Server) -> None:
    """Until all sessions are counted."""
    async with asyncio.timeout(KNOWN_SECONDS):
        while True:
            async with server.http.get("/api/keeper/v1/failures?limit=1") as answer:
                if (await answer.json())["sessions"] == SESSIONS:
                    return
            await asyncio.sleep(0.2)


async def _put_session(store: ObjectStore, number: int, now: datetime) -> None:
    """Every third one failed, in one of so many ways."""
    session = SessionId("team-a", f"train-{number % 7}", f"session_{number:05d}")
    started_at = now - timedelta(days=number % DAYS, seconds=number)
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    end = CatalogEnd(ended_at=started_at + timedelta(minutes=9), reason="SIGTERM")
    parts: dict[CatalogPart, Record] = {
        "start": CatalogStart(**names, started_at=started_at),
        "end": end,
        "summary": _summary(number, started_at),
    }
    for part, record in parts.items():
        await store.put(CatalogKey(started_at.date(), session, part).key, encode_record(record))


def _summary(number: int, started_at: datetime) -> SessionSummary:
    kind, is_failed = number % KINDS, number % 3 == 0
    title = f"ValueError: shard {kind} of s3://bucket/table-{kind} has no column 'price'"
    failures = tuple(
        FailureSummary(
            fingerprint=f"{one:016x}", title=title, rule="raised_exception", what="task load", where="etl.py:11"
        )
        for one in ((kind, kind + KINDS) if is_failed else ())
    )
    headline = HeadlineSummary(text=title, what="task load", where="etl.py:11", confidence="confirmed")
    job = JobSummary(
        job_id="01000000",
        submission_id=f"nightly-{number}",
        status="FAILED" if is_failed else "SUCCEEDED",
        outcome="failed" if is_failed else "ok",
        started_at=started_at + timedelta(seconds=9),
        ended_at=started_at + timedelta(minutes=8),
        entrypoint=f"python etl_{number % 50}.py --day {number}",
        failure=title if is_failed else "",
        headline=headline if is_failed else None,
        failures=failures,
        tasks={"FINISHED": 1000, **({"FAILED": 4} if is_failed else {})},
    )
    outcome = "failed" if is_failed else "ok"
    return SessionSummary(version=4, as_of=started_at, outcome=outcome, failures=failures, jobs=(job,))
