"""A real collector beside user code that means harm, and what of an honest session is in its store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil

from bed.ports import free_port
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session, written
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess
from support.event_scene import RayClient
from support.ray_event_batches import EventMaker, body_of
from support.stored_sessions import StoredSession

HONEST_LOG = "worker-" + "f" * 56 + "-01000000-12.out"
TEAM = SessionId("local", "demo", SESSION)


class Neighbourhood:
    """One pod: Ray's folder with an honest session, a collector of its own folder, and a local store."""

    def __init__(self, folder: Path, *flags: str, store: str = "", environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.ray = folder / "ray"
        self.session = a_session(self.ray)
        a_port_file(self.session, NODE_A)
        self.maker = EventMaker(session=SESSION, node=NODE_A)
        self.acknowledged: set[str] = set()
        own = ["--ray-cluster-name=demo", f"--events-port={free_port()}", "--role=head", "--grace-period=15s"]
        self.dashboard_port = free_port()
        """Where it looks for Ray's dashboard; nobody is there."""
        own += ["--metrics-addr=127.0.0.1:0", f"--ray-dashboard-address=http://127.0.0.1:{self.dashboard_port}"]
        own += ["--seal-age=0.5s", "--idle-seal-age=0.5s", "--user-log-interval=0.5s", "--component-log-interval=1s"]
        own += [f"--event-data-dir={folder / 'spool'}"]
        own += [store or f"--store-url=file://{folder}/store"]
        variables = {"RAY_TMP_ROOT": str(self.ray)} | (environment or {})
        self.collector = CollectorProcess(folder / "collector.log", [*own, *flags], variables)

    @property
    def port(self) -> int:
        port: int = self.collector.wait_for("listening for Ray")["port"]
        return port

    @property
    def stored(self) -> StoredSession:
        return StoredSession(self.folder / "store", TEAM)

    @property
    def resident_bytes(self) -> int:
        size: int = psutil.Process(self.collector.pid).memory_info().rss
        return size

    def say(self, text: bytes) -> None:
        """As an honest worker writes a line."""
        with (self.session / "logs" / HONEST_LOG).open("ab") as output:
            output.write(text)

    async def post(self, body: bytes, **headers: str) -> int:
        async with RayClient(self.port) as client:
            return await client.post(body, **headers)

    async def post_honest(self, count: int = 5) -> None:
        """Events that Ray must hear 200 for."""
        events = self.maker.events(count)
        assert await asyncio.wait_for(self.post(body_of(events)), 10) == 200
        self.acknowledged |= {event["eventId"] for event in events}

    def session_count(self) -> int:
        """Sessions that the store knows of."""
        return len(list(self.folder.glob("store/v1/data/local/demo/*")))

    def namespaces(self) -> set[str]:
        return {path.name for path in self.folder.glob("store/v1/data/*")}

    def shipped(self) -> bytes:
        """Every byte of every object, for looking for what must not be there."""
        return b"".join(path.read_bytes() for path in (self.folder / "store").rglob("*") if path.is_file())


def secrets(folder: Path) -> Path:
    """A folder as of a mounted Secret."""
    written(folder / "secrets" / "token", b"TOP-SECRET" * 10)
    written(folder / "secrets" / "sub" / "deep.key", b"TOP-SECRET" * 10)
    return folder / "secrets"
