"""What must not grow with what is stored: the list of ten thousand sessions, a task's lines and pages of a 2 GB log."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

from bench.figures import Figure
from bench.history_server import Bucket, Server, a_bucket, a_history_server
from bench.resources import cpu_seconds, rss_mb
from bench.search import FRAME_BYTES, PACK_TEXT_BYTES, TEXT_BYTES, log_frames
from bench.servers import in_parallel
from bench.sessions import STARTED, SessionSpec, write_session
from raykeeper.layout.keys import CatalogKey, LogPackKey, SessionId, log_indexes_prefix
from raykeeper.layout.packs import PackWriter
from raykeeper.layout.records import CatalogEnd, CatalogStart, encode_record
from raykeeper.storage.store import ObjectStore

SESSIONS, DAYS = 10_000, 100
SPEC = SessionSpec(1000, cluster="reading")
LOOKS = 20
VIEWER_MS, COUNTING_SECONDS = 150, 300
COLLECTING_SECONDS = 30
AT_REST_SECONDS = 30
_NS = 1_000_000_000


def run() -> Iterator[Figure]:
    """Each by a server that never saw the store, after another one read it; then again and again."""
    with a_bucket("sessions") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_list_of_sessions(bucket, Path(cache)))
    with a_bucket("slices") as bucket, tempfile.TemporaryDirectory() as cache:
        yield from asyncio.run(_slice_of_a_log(bucket, Path(cache)))


async def _list_of_sessions(bucket: Bucket, cache: Path) -> list[Figure]:
    store = bucket.open()
    await in_parallel(range(SESSIONS), lambda number: _put_entry(store, number), width=32)
    async with a_history_server(bucket, cache) as before:
        await _get(before, "/sessions")  # a server that was here earlier has compacted the past days
    async with a_history_server(bucket, cache) as server:
        figures = await _cold_and_warm("list of 10,000 sessions", 100, lambda: _get(server, "/sessions"))
        spent, began = cpu_seconds(server.pid), time.monotonic()
        await asyncio.sleep(AT_REST_SECONDS)
        share = (cpu_seconds(server.pid) - spent) / (time.monotonic() - began) * 100
        memory = Figure("history server of 10,000 sessions, memory", rss_mb(server.pid), "MB")
        return [*figures, memory, Figure("history server of 10,000 sessions at rest, processor", share, "%")]


async def _put_entry(store: ObjectStore, number: int) -> None:
    session = SessionId("team-a", f"train-{number % 7}", f"session_{number:05d}")
    started_at = STARTED - timedelta(days=number % DAYS, seconds=number)
    names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
    start, end = CatalogStart(**names, started_at=started_at), CatalogEnd(ended_at=started_at, reason="SIGTERM")
    await store.put(CatalogKey(started_at.date(), session, "start").key, encode_record(start))
    await store.put(CatalogKey(started_at.date(), session, "end").key, encode_record(end))


async def _slice_of_a_log(bucket: Bucket, cache: Path) -> list[Figure]:
    """By a server that never saw the store, of a session whose log indexes another one collected when it read them."""
    store = bucket.open()
    await write_session(store, SPEC)
    async with a_history_server(bucket, _folder(cache, "before")) as before:
        task = json.loads(await before.ask(SPEC, "api/v0/tasks?detail=1&limit=1"))["data"]["result"]["result"][0]
        path = f"api/v0/logs/file?task_id={task['task_id']}&attempt_number=0"
        await _write_file(store, task["node_id"], Path(task["task_log_info"]["stdout_file"]).name)
    async with a_history_server(bucket, _folder(cache, "reader")) as reader:
        await reader.ask(SPEC, path)
        await _collected(store)
    async with a_history_server(bucket, _folder(cache, "measured")) as server:
        await server.ask(SPEC, "api/v0/tasks?limit=1")
        figures = await _cold_and_warm("a task's lines out of 2 GB", 100, lambda: server.ask(SPEC, path))
    name = Path(task["task_log_info"]["stdout_file"]).name
    async with a_history_server(bucket, _folder(cache, "viewer")) as server:
        await server.ask(SPEC, "api/v0/tasks?limit=1")
        return [*figures, *await _log_viewer(server, f"log?{urlencode({'node': task['node_id'], 'file': name})}")]


async def _log_viewer(server: Server, page: str) -> list[Figure]:
    """The page of the file by a server that never read it; then a place in its middle, and its lines by number."""
    figures = await _cold_and_warm("log viewer, first lines of 2 GB", VIEWER_MS, lambda: server.ask(SPEC, page))
    figures += await _cold_and_warm(
        "log viewer, the middle of 2 GB", None, lambda: server.ask(SPEC, f"{page}&at={TEXT_BYTES // 2}")
    )
    began, memory = time.monotonic(), rss_mb(server.pid)
    async with asyncio.timeout(COUNTING_SECONDS):
        while b"lines are being counted" in await server.ask(SPEC, f"{page}&before={TEXT_BYTES}"):  # noqa: ASYNC110 - asks a server
            await asyncio.sleep(0.1)
    counted = time.monotonic() - began
    told = f"the server's memory grew by {max(0.0, rss_mb(server.pid) - memory):.0f} MB"
    return [*figures, Figure("log viewer, lines of 2 GB counted", counted, "s", baseline=told)]


def _folder(cache: Path, name: str) -> Path:
    folder = cache / name
    folder.mkdir()
    return folder


async def _collected(store: ObjectStore) -> None:
    async with asyncio.timeout(COLLECTING_SECONDS):
        while not [stat async for stat in store.list(log_indexes_prefix(SPEC.id))]:  # noqa: ASYNC110 - asks a server
            await asyncio.sleep(0.1)


async def _write_file(store: ObjectStore, node: str, name: str) -> None:
    """One file, shipped in packs of the usual size."""
    frames, per_pack = itertools.cycle(log_frames()), PACK_TEXT_BYTES // FRAME_BYTES
    for number, start in enumerate(range(0, TEXT_BYTES // FRAME_BYTES, per_pack)):
        sealed_ns = int(STARTED.timestamp() + number) * _NS
        pack = PackWriter()
        for place in range(start, start + per_pack):
            pack.add(name, "1-1", place * FRAME_BYTES, next(frames), sealed_ns)
        await store.put(LogPackKey(SPEC.id, node, sealed_ns, number).key, pack.to_bytes())


async def _cold_and_warm(name: str, bar_ms: float | None, look: Callable[[], Awaitable[bytes]]) -> list[Figure]:
    async def took() -> float:
        began = time.monotonic()
        assert await look()
        return (time.monotonic() - began) * 1000

    cold = await took()
    warm = sorted([await took() for _ in range(LOOKS)])
    return [
        Figure(f"{name}, first time", cold, "ms", bar_ms),
        Figure(
            f"{name}, p95",
            warm[math.ceil(LOOKS * 0.95) - 1],
            "ms",
            bar_ms,
            baseline=f"median {warm[LOOKS // 2]:.0f} ms",
        ),
    ]


async def _get(server: Server, path: str) -> bytes:
    async with server.http.get(path) as answer:
        assert answer.status == 200, f"{path}: {answer.status}"
        return await answer.read()
