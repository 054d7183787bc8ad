"""The real history server over a folder that others write into, and what it costs to serve it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bed.processes import kill_all
from history.replicas.history_replicas import Replica
from raykeeper.layout.keys import EventSegmentKey, SessionId
from raykeeper.storage.store import ObjectStore
from support.history_scene import SESSION, put_end, put_session, session_url
from support.ingest_scene import finished_task, segment

TASKS = 20
LOOK_SECONDS = 0.02
SEALED_NS = 1_794_736_800_000_000_000


@dataclass
class AttackedServer:
    """One server; `livez` is asked all the time."""

    url: str
    pid: int
    replica: Replica
    http: aiohttp.ClientSession
    waits: list[float] = field(default_factory=list)
    """Seconds that `/livez` took, one after the other."""

    @property
    def peak_bytes(self) -> int:
        """The most memory it ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    async def get(self, path: str) -> tuple[int, bytes]:
        async with self.http.get(f"{self.url}{path}") as response:
            return response.status, await response.read()

    async def look(self) -> None:
        while True:
            began = time.monotonic()
            await self.get("/livez")
            self.waits.append(time.monotonic() - began)
            await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def attacked_server(store_folder: Path, folder: Path, *arguments: str) -> AsyncIterator[AttackedServer]:
    """A process of its own, looked at until the end of the test."""
    replica = Replica(folder, {}, arguments=(f"--store=file://{store_folder}", *arguments))
    timeout = aiohttp.ClientTimeout(total=120)
    try:
        await replica.start()
        async with aiohttp.ClientSession(timeout=timeout) as http:
            server = AttackedServer(replica.url, replica.pid, replica, http)
            looking = asyncio.create_task(server.look())
            try:
                yield server
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
    finally:
        kill_all(folder)


async def put_ended_session(store: ObjectStore, session: SessionId = SESSION, tasks: int = TASKS) -> str:
    """A session that ended, with so many tasks; the prefix of its URLs."""
    await put_session(store, session)
    await put_end(store, session=session)
    events = [event for number in range(tasks) for event in finished_task(number)]
    await put_object(store, session, segment(events), 0)
    return session_url(session)


async def put_object(store: ObjectStore, session: SessionId, data: bytes, number: int, node: str = "aa" * 28) -> str:
    """A segment of events with any bytes."""
    key = EventSegmentKey(session, node, SEALED_NS + number * 1_000_000_000, number).key
    await store.put(key, data)
    return key
