"""A catalog of a million sessions: its list, a dry run of retention over all of it, and the server's memory.

Sessions of the newest days are there object by object. Of the older ones there is what an earlier sweep remembered, as
in a store that has been swept for a year; each of their days has one session's objects, so that its folder is there.
"""

from __future__ import annotations

import asyncio
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bench.figures import Figure
from bench.history_server import Bucket, Server, a_history_server
from bench.resources import rss_mb
from raykeeper.layout.keys import CatalogKey, CatalogPart, SessionId
from raykeeper.layout.records import CatalogEnd, CatalogStart, Record, encode_record
from raykeeper.layout.retention import SessionFacts, encode_day_facts
from raykeeper.layout.summaries import JobSummary, SessionSummary

SESSIONS = int(os.environ.get("RAYKEEPER_BENCH_SESSIONS", "1000000"))
DAYS, DAYS_WITH_OBJECTS, NAMESPACES = 365, 3, 40
LIST_MS, DRY_RUN_SECONDS, MEMORY_MB = 200, 60, 500
LOOKS = 40
POLICY = """\
rules:
  - namespace: team-1*
    failed: 90d
    succeeded: 7d
  - namespace: team-2*
    any: 180d
    sessions: 5000
default:
  any: 90d
  size: 2TB
"""


def run() -> Iterator[Figure]:
    """By a server and a command that never saw the store."""
    with tempfile.TemporaryDirectory() as folder:
        store, now = Path(folder) / "store", datetime.now(UTC)
        _make(store, now)
        policy = Path(folder) / "retention.yaml"
        policy.write_text(POLICY)
        yield from asyncio.run(_list_figures(store, Path(folder)))
        yield from asyncio.run(_dry_run_figures(store, policy))
        yield from asyncio.run(_sweep_figures(store, policy, Path(folder)))


async def _list_figures(store: Path, folder: Path) -> list[Figure]:
    bucket = Bucket(f"file://{store}", {})
    async with a_history_server(bucket, folder / "before") as before:
        await _took_ms(before)  # who was here earlier has compacted the past days
    async with a_history_server(bucket, folder / "cache") as server:
        first = await _took_ms(server)
        warm = sorted([await _took_ms(server, pause=0.5) for _ in range(LOOKS)])
        deep = await _took_ms(server, "/api/keeper/v1/sessions?limit=50&order=oldest")
        return [
            Figure("list of a million sessions, first time", first, "ms"),
            Figure(
                "list of a million sessions, p95",
                warm[math.ceil(LOOKS * 0.95) - 1],
                "ms",
                LIST_MS,
                baseline=f"median {warm[LOOKS // 2]:.0f} ms",
            ),
            Figure("its oldest page", deep, "ms"),
            Figure("history server that listed a million sessions, memory", rss_mb(server.pid), "MB", MEMORY_MB),
        ]


async def _dry_run_figures(store: Path, policy: Path) -> list[Figure]:
    began, spent = time.monotonic(), _children_seconds()
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("raykeeper")), "retention", "--dry-run"),
        *(f"--store=file://{store}", f"--retention={policy}"),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    told = said.decode().splitlines()[-1]
    return [
        Figure("dry run over a million sessions", time.monotonic() - began, "s", DRY_RUN_SECONDS, baseline=told),
        Figure("its processor time", _children_seconds() - spent, "s"),
        Figure("largest process so far, memory at its peak", peak, "MB", MEMORY_MB),
    ]


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _sweep_figures(store: Path, policy: Path, folder: Path) -> list[Figure]:
    """A server that sweeps, until it has added up what namespaces use; nothing may go by this file."""
    keep = policy.with_name("keep.yaml")
    keep.write_text("default:\n  keep: forever\n")
    environment = {"RAYKEEPER_RETENTION": str(keep)}
    async with a_history_server(Bucket(f"file://{store}", environment), folder / "sweeping") as server:
        began = time.monotonic()
        async with asyncio.timeout(900):
            while True:
                if await _counted(server) >= SESSIONS * 0.99:
                    break
                await asyncio.sleep(0.5)
        took = time.monotonic() - began
        await _took_ms(server)
        slow = max([await _took_ms(server) for _ in range(3)])
        return [
            Figure("first sweep over a million sessions", took, "s"),
            Figure("list after it", slow, "ms"),
            Figure("history server that sweeps a million sessions, memory", rss_mb(server.pid), "MB", MEMORY_MB),
        ]


async def _counted(server: Server) -> int:
    async with server.http.get("/api/keeper/v1/storage") as answer:
        return sum(one["sessions"] for one in (await answer.json())["namespaces"])


async def _took_ms(server: Server, path: str = "/sessions", pause: float = 0.0) -> float:
    await asyncio.sleep(pause)
    began = time.monotonic()
    async with server.http.get(path) as answer:
        assert answer.status == 200, f"{path}: {answer.status}"
        await answer.read()
    return (time.monotonic() - began) * 1000


def _make(store: Path, now: datetime) -> None:
    of_day = SESSIONS // DAYS
    for number in range(DAYS):
        day = (now - timedelta(days=number)).date()
        numbers = range(number * of_day, (number + 1) * of_day)
        if number < DAYS_WITH_OBJECTS:
            for one in numbers:
                _put_objects(store, one, day)
        else:
            _put_objects(store, numbers[0], day)
            key, data = encode_day_facts(day, [_facts(one, day) for one in reversed(numbers)])
            path = store / key.key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _id(number: int) -> SessionId:
    return SessionId(f"team-{number % NAMESPACES}", f"train-{number % 7}", f"session_2026-11-15_{number:012d}_1")


def _times(number: int, day: date) -> tuple[datetime, datetime]:
    started_at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=number % 80_000)
    return started_at, started_at + timedelta(minutes=9)


def _put_objects(store: Path, number: int, day: date) -> None:
    session, (started_at, ended_at) = _id(number), _times(number, day)
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    job = JobSummary(job_id="01000000", status="SUCCEEDED", outcome="ok", entrypoint="python train.py")
    parts: dict[CatalogPart, Record] = {
        "start": CatalogStart(**names, started_at=started_at, ray_version="2.60.0"),
        "end": CatalogEnd(ended_at=ended_at, reason="terminated"),
        "summary": SessionSummary(
            version=6, as_of=ended_at, outcome="failed" if number % 3 == 0 else "ok", jobs=(job,)
        ),
    }
    folder = (store / CatalogKey(day, session, "start").key).parent
    folder.mkdir(parents=True, exist_ok=True)
    for part, record in parts.items():
        (store / CatalogKey(day, session, part).key).write_bytes(encode_record(record))


def _facts(number: int, day: date) -> SessionFacts:
    session, (started_at, ended_at) = _id(number), _times(number, day)
    return SessionFacts(
        *(session.namespace, session.cluster, session.session),
        started_at=started_at,
        start_written=started_at,
        end_written=ended_at,
        summary_written=ended_at,
        is_final=True,
        ended_at=ended_at,
        outcome="failed" if number % 3 == 0 else "ok",
        bytes=(number % 1000) * 10_000,
        objects=number % 100,
        last_written=ended_at,
    )
