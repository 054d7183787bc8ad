"""A hostile bucket: for minutes, somebody plants and damages objects beside honest sessions that two servers show.

`HOSTILE_SECONDS` says how long, `HOSTILE_SEED` repeats what was done.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import pytest
import zstandard

from history.hostile.attacked_server import AttackedServer, attacked_server, put_ended_session, put_object
from raykeeper.layout.keys import CatalogKey, LogPackKey, PolledKey, SessionId, manifest_key
from raykeeper.layout.packs import Frame, Gap, PackIndex, encode_index
from raykeeper.layout.segments import compress_lines
from raykeeper.storage.store import ObjectStore
from support.history_scene import HEAD_ID, STARTED_AT, PackBuilder, local_store, session_url

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "600"))
MEMORY_LIMIT_BYTES = 1 << 30
LIVEZ_P99_SECONDS = 0.2
HONEST = [SessionId("team-a", f"train-{number}", "session_2026-11-15_20-00-00_000000_9") for number in range(3)]
HOSTILE = [SessionId("attacker", f"c-{number}", "session_2026-11-15_20-00-00_000000_6") for number in range(6)]
QUESTIONS = (
    "/api/v0/tasks?detail=1&limit=100",
    "/api/v0/tasks/summarize",
    "/api/jobs/",
    "/nodes?view=summary",
    f"/api/v0/logs?node_id={HEAD_ID}",
    f"/api/v0/logs/file?node_id={HEAD_ID}&filename=raylet.out",
)
BOMB = zstandard.ZstdCompressor(level=19).compress(b"x" * (256 << 20))


@dataclass
class Attacker:
    """Writes whatever it likes under its own namespace, and into the catalog that all share."""

    store: ObjectStore
    folder: Path
    dice: random.Random
    done: dict[str, int] = field(default_factory=dict)

    async def act(self) -> None:
        session = self.dice.choice(HOSTILE)
        deed = self.dice.choice(
            [self.plant_segment, self.plant_pack, self.plant_manifest, self.plant_entry, self.plant_polled, self.damage]
        )
        self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
        await deed(session)

    async def plant_segment(self, session: SessionId) -> None:
        lines = [b"{" * 1000, b"\xff" * 100, b'{"eventType":"TASK_LIFECYCLE_EVENT"}', b"[]"]
        body = self.dice.choice([BOMB, self.dice.randbytes(500), b"", compress_lines(lines)])
        await put_object(self.store, session, body, self.dice.randrange(1000))

    async def plant_pack(self, session: SessionId) -> None:
        far = self.dice.choice([0, 1 << 48, 1 << 60])
        frame = Frame("a/" * self.dice.choice([1, 1500]) + "big.out", "1-1", far, 256 << 20, 0, len(BOMB), 5)
        gap = Gap("sparse.out", "1-2", 0, far, "deleted")
        pack = BOMB + encode_index(PackIndex((frame,) * self.dice.choice([0, 1, 1000]), (gap,)))
        key = LogPackKey(session, HEAD_ID, self.dice.randrange(10**18), 0).key
        await self.store.put(key, self.dice.choice([pack, pack[-200:], b"", self.dice.randbytes(100)]))

    async def plant_manifest(self, session: SessionId) -> None:
        other = self.dice.choice(HONEST)
        files = {"tasks": [{"key": f"{other.prefix}tables/tasks/x-00-00000.parquet", "size": 5}]}
        planted = {"generation": "x", "inputs": [], "input_bytes": 0, "tables": files, "tasks": 1, "as_of_ns": 1}
        body = self.dice.choice([b"", b"[" * 10_000, msgspec.json.encode(planted | {"is_final": True})])
        name = self.dice.choice(["1.json", "999999999.json", "", ""])
        key = manifest_key(session, self.dice.randrange(1, 50))
        await self.store.put(key.rsplit("/", 1)[0] + f"/{name}" if name else key, body)

    async def plant_entry(self, session: SessionId) -> None:
        key = CatalogKey(STARTED_AT.date(), session, "start").key
        times = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "2026-11-15T20:00:00Z"]
        names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
        entry = msgspec.json.encode(names | {"started_at": self.dice.choice(times)})
        await self.store.put(key, self.dice.choice([entry, entry[:20], b""]))

    async def plant_polled(self, session: SessionId) -> None:
        path = self.dice.choice(["/api/jobs/", "/nodes?view=summary", "/api/v0/placement_groups"])
        body = self.dice.choice([BOMB, b"", zstandard.ZstdCompressor().compress(b"[" * 100_000)])
        await self.store.put(PolledKey(session, path, self.dice.randrange(10**12, 10**13)).key, body)

    async def damage(self, session: SessionId) -> None:
        """Cut, flip or replace one of the session's own objects, tables that a server made of it too."""
        paths = [path for path in (self.folder / session.prefix).rglob("*") if path.is_file() and not path.is_symlink()]
        if not paths:
            return
        path = self.dice.choice(paths)
        data = bytearray(path.read_bytes()[: 1 << 20])
        if self.dice.random() < 0.5:
            del data[self.dice.randrange(len(data) + 1) :]
        for _ in range(min(len(data), 5)):
            data[self.dice.randrange(len(data))] ^= 0xFF
        path.write_bytes(bytes(data))


async def answers_of(server: AttackedServer) -> Mapping[str, tuple[int, bytes]]:
    """What it says of the honest sessions."""
    paths = [session_url(session) + question for session in HONEST for question in QUESTIONS]
    return {path: await server.get(path) for path in paths}


async def pester(server: AttackedServer, dice: random.Random) -> None:
    """Ask about hostile sessions, whatever comes of it."""
    paths = [session_url(session) + question for session in HOSTILE for question in QUESTIONS]
    paths += ["/", "/jobs", "/clusters", *(f"{session_url(session)}/api/v0/logs/archive" for session in HOSTILE)]
    while True:
        try:
            async with asyncio.timeout(30):
                await server.get(dice.choice(paths))
        except (TimeoutError, aiohttp.ClientError):
            await asyncio.sleep(0.1)


async def test_honest_sessions_are_answered_as_without_the_hostile_ones(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOSTILE_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    dice = random.Random(seed)
    print(f"HOSTILE_SEED={seed} HOSTILE_SECONDS={SECONDS:g}")
    store = local_store(tmp_path / "store")
    for session in HONEST:
        await put_ended_session(store, session)
        builder = PackBuilder(store, session)
        builder.add("raylet.out", b"fine\n" * 1000)
        await builder.put()
    attacker = Attacker(store, tmp_path / "store", dice)
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(attacked_server(tmp_path / "store", tmp_path / f"server-{number}"))
            for number in range(2)
        ]
        expected = await answers_of(servers[0])
        assert {status for status, _ in expected.values()} == {200}
        for session in HOSTILE:
            await put_ended_session(store, session)
        pestering = [asyncio.create_task(pester(server, random.Random(seed))) for server in servers]
        wrong, asked, until = list[str](), 0, time.monotonic() + SECONDS
        try:
            while time.monotonic() < until:
                for _ in range(5):
                    await attacker.act()
                for server in servers:
                    found = await answers_of(server)
                    asked += len(found)
                    wrong += [f"{path}: {found[path][0]}" for path in expected if found[path] != expected[path]]
                    listed, page = await server.get("/clusters")
                    if listed != 200 or any(session.cluster.encode() not in page for session in HONEST):
                        wrong.append(f"/clusters: {listed}")
        finally:
            for task in pestering:
                task.cancel()
            await asyncio.gather(*pestering, return_exceptions=True)
        report(servers, attacker, asked, wrong)
        assert wrong == []
        assert max(server.peak_bytes for server in servers) <= MEMORY_LIMIT_BYTES


def report(servers: list[AttackedServer], attacker: Attacker, asked: int, wrong: list[str]) -> None:
    """The figures; `/livez` is printed and not asserted, since other programs use the cores, too."""
    waits = sorted(wait for server in servers for wait in server.waits)
    p99, worst = waits[len(waits) * 99 // 100], waits[-1]
    peaks = ", ".join(f"{server.peak_bytes >> 20} MB" for server in servers)
    print(f"deeds: {attacker.done}; honest answers: {asked}, wrong: {len(wrong)}; peaks: {peaks}")
    wanted = f"wanted: {LIVEZ_P99_SECONDS * 1000:.0f}"
    print(f"/livez: {len(waits)} asked, p99 {p99 * 1000:.0f} ms ({wanted}), worst {worst:.2f} s")
