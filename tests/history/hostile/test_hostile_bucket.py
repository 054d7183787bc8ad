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

from history.hostile.attacked_server import (
    SEALED_NS,
    AttackedServer,
    attacked_server,
    put_ended_session,
    put_object,
)
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.layout.alerts import AlertKey, session_alerts_prefix
from raykeeper.layout.failure_notes import note_key
from raykeeper.layout.keys import (
    CatalogKey,
    CatalogPart,
    KubeFactsKey,
    LogIndexKey,
    LogPackKey,
    PolledKey,
    SamplesKey,
    SampleTableKey,
    SessionId,
    hour_of,
    manifest_key,
)
from raykeeper.layout.packs import Frame, Gap, PackIndex, encode_index
from raykeeper.layout.retention import hold_key, removed_key
from raykeeper.layout.segments import compress_lines
from raykeeper.storage.store import ObjectStore
from support.history_scene import HEAD_ID, STARTED_AT, PackBuilder, local_store, session_url

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "600"))
MEMORY_LIMIT_BYTES = 1 << 30
LIVEZ_P99_SECONDS = 0.2
HONEST = [SessionId("team-a", f"train-{number}", "session_2026-11-15_20-00-00_000000_9") for number in range(3)]
HOSTILE = [SessionId("attacker", f"c-{number}", "session_2026-11-15_20-00-00_000000_6") for number in range(6)]
CATALOG_PARTS: tuple[CatalogPart, ...] = ("start", "end", "summary")
QUESTIONS = (
    "/api/v0/tasks?detail=1&limit=100",
    "/api/v0/tasks/summarize",
    "/api/jobs/",
    "/nodes?view=summary",
    f"/api/v0/logs?node_id={HEAD_ID}",
    f"/api/v0/logs/file?node_id={HEAD_ID}&filename=raylet.out",
)
OPERATIONS = (
    *("", "/jobs", "/report", "/overview", "/curves", "/usage", "/timeline", "/timeline/tasks"),
    "/search?text=fine",
)
"""Of our own API, about one session."""
PAGES = ("overview", "report", "report.html", "search?text=fine", "timeline")
HURRIED = [f"{session_url(session)}/timeline" for session in HONEST]
"""Pages that show themselves without their picture where that takes longer than a moment."""
SITE = ("/clusters", "/sessions", "/jobs", "/failures", "/storage", "/search?text=fine")
"""What shows all sessions, the hostile ones too."""
LISTS = ("/clusters", "/sessions")
"""Those of them in which every honest session must stay."""
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
            [
                *(self.plant_segment, self.plant_pack, self.plant_manifest, self.plant_entry, self.plant_polled),
                *(self.plant_samples, self.plant_kube_facts, self.plant_index, self.plant_mark, self.damage),
            ]
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
        key = CatalogKey(STARTED_AT.date(), session, self.dice.choice(CATALOG_PARTS)).key
        times = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "2026-11-15T20:00:00Z"]
        names = {"namespace": session.namespace, "cluster": session.cluster, "session": session.session}
        entry = msgspec.json.encode(names | {"started_at": self.dice.choice(times)})
        await self.store.put(key, self.dice.choice([entry, entry[:20], *self.odd_bodies()]))

    async def plant_polled(self, session: SessionId) -> None:
        path = self.dice.choice(["/api/jobs/", "/nodes?view=summary", "/api/v0/placement_groups"])
        body = self.dice.choice([BOMB, b"", zstandard.ZstdCompressor().compress(b"[" * 100_000)])
        await self.store.put(PolledKey(session, path, self.dice.randrange(10**12, 10**13)).key, body)

    def odd_bodies(self) -> list[bytes]:
        """What no program of ours writes, whatever the format is: large, deep, cut, of other types, and nothing."""
        odd = [b"[" * 100_000, b'{"a":' * 5000, b'{"version":-1,"facts":[null,{"at":1e400}]}', b"null\n" * 10_000]
        return [BOMB, b"", self.dice.randbytes(500), *odd, *(zstandard.ZstdCompressor().compress(body) for body in odd)]

    async def plant_samples(self, session: SessionId) -> None:
        """Blocks of resource samples, and tables that are said to have been made of them."""
        block = SamplesKey(session, HEAD_ID, SEALED_NS + self.dice.randrange(10**12), self.dice.randrange(100)).key
        hour = hour_of(SEALED_NS)
        table = SampleTableKey(session, hour, f"{self.dice.randrange(16**8):08x}", 0, "fine").key
        await self.store.put(self.dice.choice([block, table]), self.dice.choice(self.odd_bodies()))

    async def plant_kube_facts(self, session: SessionId) -> None:
        uid = f"uid-{self.dice.randrange(20)}"
        key = KubeFactsKey(session.namespace, session.cluster, uid, self.dice.randrange(10**18, 2 * 10**18)).key
        await self.store.put(key, self.dice.choice(self.odd_bodies()))

    async def plant_index(self, session: SessionId) -> None:
        """Copies of the indexes of log packs, which are read instead of the packs."""
        key = LogIndexKey(session, HEAD_ID, f"{self.dice.randrange(16**16):016x}", self.dice.randrange(1, 9)).key
        await self.store.put(key, self.dice.choice(self.odd_bodies()))

    async def plant_mark(self, session: SessionId) -> None:
        """Notes about failures, marks of alerts, holds and removals, in the folders that all share."""
        alert = AlertKey(session_alerts_prefix(session), "pager", "01000000")
        note = note_key(f"{self.dice.randrange(16**8):08x}", SEALED_NS, f"{self.dice.randrange(16**8):08x}")
        keys = [note, alert.sent, alert.claim(self.dice.randrange(10)), hold_key(session), removed_key(session)]
        await self.store.put(self.dice.choice(keys), self.dice.choice(self.odd_bodies()))

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


def questions_about(session: SessionId) -> list[str]:
    """Everything that is asked about one session: Ray's API, ours and pages."""
    own = f"{PREFIX}/sessions/{session.namespace}/{session.cluster}/{session.session}"
    url = session_url(session)
    return [
        *(url + question for question in QUESTIONS),
        *(own + operation for operation in OPERATIONS),
        *(f"{url}/{page}" for page in PAGES),
    ]


async def answers_of(server: AttackedServer) -> Mapping[str, tuple[int, bytes]]:
    """What it says of the honest sessions."""
    return {path: await server.get(path) for session in HONEST for path in questions_about(session)}


async def pester(server: AttackedServer, dice: random.Random) -> None:
    """Ask about hostile sessions, whatever comes of it."""
    paths = [question for session in HOSTILE for question in questions_about(session)]
    paths += ["/", *SITE, *(f"{session_url(session)}/api/v0/logs/archive" for session in HOSTILE)]
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
        assert {path: status for path, (status, _) in expected.items() if status != 200} == {}
        again = await answers_of(servers[1])
        timed = {path for path in expected if again[path] != expected[path] or path in HURRIED}
        assert not any(path.endswith(question) for path in timed for question in QUESTIONS), timed
        print(f"answers that tell the time, of which only the status is compared: {len(timed)} of {len(expected)}")
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
                    same = {path: found[path] == expected[path] for path in expected.keys() - timed}
                    same |= {path: found[path][0] == 200 for path in timed}
                    wrong += [difference(path, expected[path], found[path]) for path in expected if not same[path]]
                    for path in SITE:
                        listed, page = await server.get(path)
                        is_whole = path not in LISTS or all(session.cluster.encode() in page for session in HONEST)
                        if listed != 200 or not is_whole:
                            wrong.append(f"{path}: {listed}")
        finally:
            for task in pestering:
                task.cancel()
            await asyncio.gather(*pestering, return_exceptions=True)
        report(servers, attacker, asked, wrong)
        assert wrong == []
        assert p99_seconds(servers) <= LIVEZ_P99_SECONDS
        assert max(server.peak_bytes for server in servers) <= MEMORY_LIMIT_BYTES


def difference(path: str, expected: tuple[int, bytes], found: tuple[int, bytes]) -> str:
    """Where an answer is another one than before."""
    pairs = zip(expected[1], found[1], strict=False)
    place = next((at for at, (one, other) in enumerate(pairs) if one != other), len(expected[1]))
    before, now = (body[max(0, place - 100) : place + 100] for _, body in (expected, found))
    return f"{path}: {found[0]} has {now!r} instead of {before!r}"


def p99_seconds(servers: list[AttackedServer]) -> float:
    """Of `/livez`, which is asked all the time."""
    waits = sorted(wait for server in servers for wait in server.waits)
    return waits[len(waits) * 99 // 100]


def report(servers: list[AttackedServer], attacker: Attacker, asked: int, wrong: list[str]) -> None:
    waits = [wait for server in servers for wait in server.waits]
    p99, worst = p99_seconds(servers), max(waits)
    peaks = ", ".join(f"{server.peak_bytes >> 20} MB" for server in servers)
    print(f"deeds: {attacker.done}; honest answers: {asked}, wrong: {len(wrong)}; peaks: {peaks}")
    wanted = f"wanted: {LIVEZ_P99_SECONDS * 1000:.0f}"
    print(f"/livez: {len(waits)} asked, p99 {p99 * 1000:.0f} ms ({wanted}), worst {worst:.2f} s")
