"""Whatever bytes reach the sink's port, and whatever lies in Ray's folder: no error, and no file from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import stat
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import cast

import pytest

from collector.logs.shipping import Scene
from collector.ray_folders import NODE_A, SESSION, a_session, written
from fuzz.fuzzing import walk
from raykeeper.collector.events.connection import Connection
from raykeeper.collector.events.incoming import IncomingBody
from raykeeper.collector.events.requests import MAX_HEAD_BYTES, RequestHead
from raykeeper.collector.incarnations import observe_hook_files, observe_incarnations
from raykeeper.collector.node_ids import parse_hook_file, parse_port_file_name, parse_raylet_log
from raykeeper.collector.ray_metrics import MAX_LINE_BYTES, MAX_LINES, WantedLines, parse_metrics
from raykeeper.collector.samples.machine import MachineFigures, parse_traffic
from raykeeper.collector.samples.rows import to_sample
from raykeeper.collector.sessions import SessionWatch
from raykeeper.layout.samples import decode_block, encode_block, to_block
from support.clocks import ManualClock

HTTP_WORDS = [b"\r\n", b"\r\n\r\n", b"POST /v1/events HTTP/1.1\r\n", b"Content-Length: ", b"0\r\n\r\n", b"ffffffff\r\n"]
HTTP_WORDS += [
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: close\r\n",
    b"GET /healthz ",
]
ANSWER = re.compile(
    rb"HTTP/1\.1 (100 Continue\r\n|\d{3} [A-Za-z -]+\r\nContent-Length: 0\r\n([A-Za-z-]+: \w+\r\n)*)\r\n"
)
ID_WORDS = [
    b"a" * 56,
    b"=> ",
    b"Setting node ID node_id=",
    b"[2026-11-15 20:10:29,636 I",
    b"_port_",
    b"gcs_server",
    b"\n",
]
METRIC_WORDS = [b"\nray_node_cpu_utilization", b'\nray_resources{Name="CPU",State="USED"} ', b"NaN", b"+Inf", b"1e999"]
METRIC_WORDS += [b'GpuIndex="', b'SessionName="', b'"} ', b"\\", b"{", b"\n", b"-0.0", b"\xff", b" 1 2 3"]
OUTSIDE = b"from outside of the log folder"
TREE_STEPS = 40
NAMES = (
    b"worker-1.out",
    b"raylet.out",
    b"sub",
    b"events",
    b"\xff\xfe",
    b"a\nb",
    b"x" * 255,
    b"..",
    b".",
    b"serve",
    b" ",
)


class Body:
    """Takes a body as the spool's does, and keeps it."""

    def __init__(self) -> None:
        self.size = 0
        self.backlog = None

    def write(self, part: bytes) -> None:
        self.size += len(part)

    async def finish(self) -> None:
        return None

    def discard(self) -> None:
        return None


class Receiver:
    """What a connection belongs to, without a disk."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.pace: Callable[[], Awaitable[None]] = Body().finish

    def receive(self, head: RequestHead) -> IncomingBody:
        assert head.size <= MAX_HEAD_BYTES
        self.bodies.append(Body())
        return cast("IncomingBody", self.bodies[-1])

    def answered(self, status: HTTPStatus) -> None:
        assert status in HTTPStatus

    def misdirected(self, path: bytes) -> None:
        assert len(path) <= MAX_HEAD_BYTES

    def steady(self) -> float:
        return 0.0

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Transport(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def fed(data: bytes) -> None:
    """Send the bytes in parts of several sizes; every answer must be whole, and no body longer than what was sent."""
    for size in (1 << 20, 7):
        receiver, transport = Receiver(), Transport()
        connection = Connection(receiver)
        connection.connection_made(transport)
        for start in range(0, min(len(data), 2000 * size), size):
            if transport.is_closing():
                break
            connection.data_received(data[start : start + size])
        while connection._answers:
            await asyncio.wait(connection._answers)
        connection.connection_lost(None)
        assert ANSWER.sub(b"", bytes(transport.sent)) == b""
        assert sum(body.size for body in receiver.bodies) <= len(data)


def test_any_bytes_at_the_sink_are_answered_or_hung_up_on() -> None:
    with asyncio.Runner() as runner:
        assert walk("requests", lambda data: runner.run(fed(data)), words=HTTP_WORDS) > 10


@pytest.fixture
def ray(tmp_path: Path) -> Path:
    return tmp_path / "ray"


def test_any_file_that_may_name_a_node_names_one_or_none(ray: Path) -> None:
    session = a_session(ray)

    def read(data: bytes) -> None:
        text = data.decode(errors="replace")
        parse_hook_file(text)
        parse_raylet_log(text)
        parse_port_file_name(text[:200])
        written(session / "logs" / "raylet.out", data)
        written(ray / "init.log", data)
        nodes = [*observe_incarnations(session), observe_hook_files(ray, session, is_first=True)]
        assert all(re.fullmatch(r"[0-9a-f]{56}", node.node_id) for node in nodes if node)

    assert walk("node-ids", read, words=ID_WORDS) > 10


def test_any_metrics_give_a_row_that_can_be_stored() -> None:
    def read(data: bytes) -> None:
        samples = []
        for size in (1 << 16, 1000, 1):
            wanted = WantedLines()
            for start in range(0, min(len(data), 5000 * size), size):
                wanted.feed(data[start : start + size])
                assert len(wanted._rest) <= 2 * MAX_LINE_BYTES + size
            wanted.feed(b"\n")
            assert len(wanted.lines) <= MAX_LINES
            metrics = parse_metrics(wanted)
            assert metrics.dropped_events >= 0
            samples.append(to_sample(1_794_769_207.0, SESSION, metrics, MachineFigures()))
        assert samples[0] == samples[1]
        assert decode_block(encode_block(to_block(samples[:1]))).rows == 1
        parse_traffic(data.decode(errors="replace").splitlines())

    assert walk("ray-metrics", read, words=METRIC_WORDS) > 10


def test_any_tree_below_rays_folder_ships_what_is_in_it_alone(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside" / "token", OUTSIDE).parent
    with asyncio.Runner() as runner:

        async def look_at(data: bytes) -> None:
            folder = tmp_path / "tree"
            shutil.rmtree(folder, ignore_errors=True)
            scene = Scene(folder)
            written(scene.logs / "worker-honest.out", b"honest")
            try:
                tree = Tree(scene.root, outside)
                for part in (data[: len(data) // 2], data[len(data) // 2 :]):
                    tree.grow(part)
                    await scene.tick()
                SessionWatch(scene.root, ManualClock()).poll()
                assert scene.bucket.text("worker-honest.out") == b"honest"
                assert not any(OUTSIDE in pack for pack in scene.bucket.packs.values())
            finally:
                await scene.shipper.close()

        assert walk("folder-trees", lambda data: runner.run(look_at(data))) > 3


class Tree:
    """A tree that grows as bytes say: each step is two of them, what to do and with which name."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.root, self.outside = root, outside
        self.place = self.top = root / SESSION / "logs"
        self._steps = (
            *(self.folder, self.enter, self.link, self.fifo, self.sparse, self.rename, self.touch, self.socket),
            *(self.leave, self.session, self.port_file, self.file),
        )

    def grow(self, program: bytes) -> None:
        for action, choice in zip(program[: 2 * TREE_STEPS : 2], program[1 : 2 * TREE_STEPS : 2], strict=False):
            path = self.place / os.fsdecode(NAMES[choice % len(NAMES)])
            with contextlib.suppress(OSError, ValueError):
                self._steps[action % len(self._steps)](path, action)

    def folder(self, path: Path, _: int) -> None:
        path.mkdir()

    def enter(self, path: Path, _: int) -> None:
        if path.is_dir() and not path.is_symlink():
            self.place = path

    def leave(self, _path: Path, _: int) -> None:
        self.place = self.top

    def link(self, path: Path, action: int) -> None:
        path.symlink_to((self.outside, self.outside / "token", self.place, Path("loop"))[action // 12 % 4])

    def fifo(self, path: Path, _: int) -> None:
        os.mkfifo(path)

    def socket(self, path: Path, _: int) -> None:
        os.mknod(path, stat.S_IFSOCK | 0o600)

    def sparse(self, path: Path, action: int) -> None:
        if is_plain(path):
            with path.open("ab") as file:
                file.truncate(action << 8)

    def rename(self, path: Path, action: int) -> None:
        path.rename(self.place / f"renamed-{action}")

    def touch(self, path: Path, action: int) -> None:
        os.utime(path, (-1, action << 30))

    def session(self, path: Path, _: int) -> None:
        (self.root / os.fsdecode(b"session_" + os.fsencode(path.name)) / "logs").mkdir(parents=True)

    def port_file(self, _path: Path, action: int) -> None:
        written(self.root / SESSION / f"metrics_agent_port_{NODE_A[:-2]}{action:02x}", b"1")

    def file(self, path: Path, action: int) -> None:
        if is_plain(path):
            path.write_bytes(os.fsencode(path.name) * action)


def is_plain(path: Path) -> bool:
    """Whether it may be written: a FIFO would wait for a reader, and a link leads to the file outside."""
    return not path.is_symlink() and (path.is_file() or not path.exists())
