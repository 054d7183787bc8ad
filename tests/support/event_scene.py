"""An event path with a store in memory that can be broken, and a client that posts like Ray's agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from bed.waiting import PATIENCE_SECONDS
from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.collector.bucket import Bucket
from raykeeper.collector.events.limits import EventSettings
from raykeeper.collector.events.path import EventPath
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.layout.keys import EventSegmentKey, RejectsKey, SealedKey, parse_sealed_key
from raykeeper.layout.records import Reject, decode_record
from raykeeper.layout.segments import read_lines
from raykeeper.storage.errors import StoreUnavailable
from support.conditions import until


@dataclass
class MemoryStore:
    """A bucket in memory. While `outage` is set every call raises it; `gate` holds calls back while it is not set."""

    objects: dict[str, bytes] = field(default_factory=dict)
    outage: Exception | None = None
    calls: int = 0
    order: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def put(self, key: str, data: bytes) -> None:
        self.calls += 1
        await self.gate.wait()
        if self.outage is not None:
            raise self.outage
        self.objects[key] = data
        self.order.append(key)

    async def create(self, key: str, data: bytes) -> bool:
        is_new = key not in self.objects
        await self.put(key, self.objects.get(key, data))
        return is_new

    async def find(self, key: str) -> bytes | None:
        return self.objects.get(key)


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("memory", "any", "connection refused")


@dataclass
class Directory:
    """What the session directory would say."""

    nodes: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    replaced: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By session, until when another node was there, and which."""

    def node_of(self, session: str) -> str | None:
        return self.nodes.get(session)

    def node_at(self, session: str, moment_ns: int) -> str | None:
        until_ns, earlier = self.replaced.get(session, (0, ""))
        return earlier if moment_ns < until_ns else self.node_of(session)

    def current_session(self) -> str | None:
        return self.session


def stored_events(objects: dict[str, bytes], session: str | None = None, node: str | None = None) -> list[bytes]:
    """Every line of the event segments, in the order of their keys' times."""
    return [line for facts, data in _sealed(objects, EventSegmentKey, session, node) for line in read_lines(data)]


def stored_rejects(objects: dict[str, bytes]) -> list[Reject]:
    pieces = [line for _, data in _sealed(objects, RejectsKey, None, None) for line in read_lines(data)]
    return [decode_record(line, Reject) for line in pieces]


def _sealed(
    objects: dict[str, bytes], kind: type[SealedKey], session: str | None, node: str | None
) -> Iterable[tuple[SealedKey, bytes]]:
    found = [(facts, data) for key, data in objects.items() if isinstance(facts := parse_sealed_key(key), kind)]
    for facts, data in sorted(found, key=lambda pair: (pair[0].sealed_ns, pair[0].sequence)):
        if session in (None, facts.session.session) and node in (None, facts.node_id):
            yield facts, data


class RayClient:
    """One connection on which batches are posted, one at a time, as Ray's agent does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> RayClient:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def post(self, body: bytes, **headers: str) -> int:
        """The status of the answer."""
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.send(f"POST /v1/events HTTP/1.1\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body)
        return await self.status()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def status(self) -> int:
        """Of the next answer; 0 where the connection was closed instead."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0
        return int(head.split()[1])


class Scene:
    """A running event path on a folder, its store and its directory."""

    def __init__(self, settings: EventSettings, store: MemoryStore, directory: Directory) -> None:
        clock = SystemClock()
        self.metrics = CollectorMetrics(CollectorRegistry())
        self.store = store
        self.directory = directory
        self.bucket = Bucket(clock, self.metrics, Backoff(base=0.01, limit=0.05))
        self.path = EventPath(settings, self.bucket, directory, clock, self.metrics)
        self.clock = clock

    async def post(self, *bodies: bytes) -> list[int]:
        async with RayClient(self.path.port) as client:
            return [await client.post(body) for body in bodies]

    async def flush(self, seconds: float = PATIENCE_SECONDS) -> int:
        return await self.path.flush(self.clock.steady() + seconds)

    async def until_shipped(self) -> None:
        await until(lambda: not self.path.unsent_bytes)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"raykeeper_collector_{name}", labels) or 0.0


def event_settings(folder: Path, **changes: object) -> EventSettings:
    """Settings of a test: a free port, IPv4 alone, and nothing sealed by age unless it is asked for."""
    settings = EventSettings(
        "team", "raycluster", "pod-1", folder, port=0, hosts=("127.0.0.1",), busy_seal_seconds=60, idle_seal_seconds=60
    )
    return replace(settings, **changes)  # type: ignore[arg-type]  # any field


@asynccontextmanager
async def a_scene(
    folder: Path, store: MemoryStore | None = None, directory: Directory | None = None, **changes: object
) -> AsyncIterator[Scene]:
    """An event path that takes, seals and uploads, until the block ends."""
    scene = Scene(event_settings(folder, **changes), store or MemoryStore(), directory or Directory())
    await scene.path.start()
    scene.bucket.connect(scene.store)
    running = asyncio.create_task(scene.path.run())
    try:
        yield scene
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await scene.path.stop()
