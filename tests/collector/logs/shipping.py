"""A log shipper over a folder of ours and a bucket in memory, moved by hand."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session
from raykeeper.collector.logs.settings import LogShipperSettings
from raykeeper.collector.logs.shipper import LogShipper
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.sessions import SessionWatch
from raykeeper.layout.keys import LogPackKey, parse_sealed_key
from raykeeper.layout.logs import Hole, StoredLog, logs_of_packs, newest_by_path, read_log
from raykeeper.layout.packs import PackIndex, parse_index
from support.clocks import ManualClock


class MemoryBucket:
    """Packs by key. Can be shut, as a bucket that is down: puts wait until it opens."""

    def __init__(self) -> None:
        self.packs: dict[str, bytes] = {}
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.is_waited_for = False

    async def put(self, key: str, data: bytes) -> None:
        self.is_waited_for = not self.is_open.is_set()
        try:
            await self.is_open.wait()
        finally:
            self.is_waited_for = False
        assert key not in self.packs
        self.packs[key] = data

    def of_node(self, node_id: str = NODE_A, session: str = SESSION) -> dict[str, bytes]:
        """The packs of one node in one session."""
        return {key: pack for key, pack in self.packs.items() if _facts(key) == (session, node_id)}

    def logs(self, node_id: str = NODE_A, session: str = SESSION) -> dict[str, StoredLog]:
        """The newest file of each name."""
        return newest_by_path(logs_of_packs(self.of_node(node_id, session))[0].values())

    def text(self, path: str, node_id: str = NODE_A, session: str = SESSION) -> bytes:
        """All of the newest file of that name; the test fails if something of it is missing."""
        stored = self.logs(node_id, session)[path]
        data, holes = self.read(stored, node_id, session)
        assert holes == []
        return data

    def read(self, stored: StoredLog, node_id: str = NODE_A, session: str = SESSION) -> tuple[bytes, list[Hole]]:
        """All of one generation."""
        _, fetch = logs_of_packs(self.of_node(node_id, session))
        return read_log(stored, 0, stored.size, fetch)

    @property
    def indexes(self) -> list[PackIndex]:
        """Of every pack, in the order they came."""
        return [parse_index(pack) for pack in self.packs.values()]


def _facts(key: str) -> tuple[str, str]:
    parsed = parse_sealed_key(key)
    assert isinstance(parsed, LogPackKey)
    return parsed.session.session, parsed.node_id


class Scene:
    """A session with one node, its shipper, and time that passes only by hand."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.root = folder / "ray"
        self.session = a_session(self.root)
        self.settings = replace(LogShipperSettings(folder / "spool", "ns", "demo", "pod-1"), **settings)
        self.clock = ManualClock()
        self.bucket = MemoryBucket()
        self.watch = SessionWatch(self.root, self.clock)
        a_port_file(self.session, NODE_A, at=1000)
        self.start()

    @property
    def logs(self) -> Path:
        return self.session / "logs"

    def start(self) -> None:
        """A new collector process."""
        self.metrics = CollectorMetrics(CollectorRegistry())
        self.shipper = LogShipper(self.settings, self.watch, self.bucket, self.clock, self.metrics)

    async def restart(self) -> None:
        """The collector dies and comes again; only its files remain."""
        await self.shipper.close()
        self.start()

    async def look(self, after: float = 5.0) -> None:
        """Let time pass and see what there is."""
        self.clock.advance(after)
        self.watch.poll()
        await self.shipper.look()

    async def tick(self, after: float = 100.0) -> None:
        """Let so much time pass that everything is due, look and ship."""
        await self.look(after)
        await self.shipper.ship()
