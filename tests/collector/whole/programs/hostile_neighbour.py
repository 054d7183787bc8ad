"""User code that means harm, as a program in Ray's pod: for some seconds it does at random all it can.

Arguments: Ray's folder, a folder outside of it that must not be shipped, the sink's port, the port of the metrics
address, seconds, a seed. Everything that it makes below `logs/` has `evil` in its name. At its end it prints what it
did, as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import json
import os
import random
import shutil
import socket
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

EXCHANGE = 2  # of renameat2(2)
HUGE_BYTES = 1 << 40
PAUSE_SECONDS = 0.02
KEPT = 300
"""Names in one folder: an attacker has a quota, too."""
HELD_CONNECTIONS = 24
BOMBS = (
    gzip.compress(b'[{"a":[' + b"[]," * (2 << 20) + b"[]]}]"),
    gzip.compress(b'[{"a":' + b'{"b":"},{"' * (1 << 19) + b"]"),
    gzip.compress(b"[" + b'{"a":1},' * (1 << 20) + b"{}]"),
    gzip.compress(b" " * (100 << 20)),
)


class Neighbour:
    """One attacker with its dice."""

    def __init__(self, root: Path, outside: Path, sink: int, metrics: int, dice: random.Random) -> None:
        self.root, self.outside, self.dice = root, outside, dice
        self.sink, self.metrics = sink, metrics
        self.session = root / (root / "session_latest").readlink().name
        self.home = self.session / "logs" / "evil"
        self.home.mkdir(exist_ok=True)
        self.held: list[socket.socket] = []
        self.done: Counter[str] = Counter()
        self.deeds: tuple[Callable[[], None], ...] = (
            *(self.link, self.special, self.odd_name, self.deep, self.huge, self.truncate, self.rename, self.swap),
            *(self.odd_session, self.other_session, self.latest, self.fake_node, self.many, self.grow),
            *(self.bomb, self.junk, self.stall, self.drip, self.sessions_in_events, self.scrape),
        )

    def act(self) -> None:
        deed = self.dice.choice(self.deeds)
        with contextlib.suppress(OSError):
            deed()
            self.done[deed.__name__] += 1

    def name(self) -> str:
        """Of something below `logs/`, as Ray's own are called or not at all."""
        number = self.dice.randrange(40)
        names = (f"worker-{'e' * 56}-01000000-{number}.evil.out", f"evil-{number}.log", f"raylet.{number}.evil.out")
        return self.dice.choice(names)

    def place(self) -> Path:
        """A new or a known name in a folder of its own, or beside Ray's own files."""
        folder = self.dice.choice((self.home, self.session / "logs"))
        path = folder / self.name()
        if self.dice.random() < 0.5:
            removed(path)
        return path

    def link(self) -> None:
        target = self.dice.choice([self.outside, self.outside / "token", Path("/proc/self/environ"), Path("loop")])
        self.place().symlink_to(target)

    def special(self) -> None:
        kind = self.dice.choice((stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK))
        device = os.makedev(1, self.dice.choice((3, 5, 8)))  # null, zero, random
        os.mknod(self.place(), kind | 0o666, device if kind == stat.S_IFCHR else 0)

    def odd_name(self) -> None:
        odd = (b"\xff\xfe", b"a\nb", b"a" * 240, "é".encode() * 100, b"...", b"%2e%2e", b"\\..\\x", b" ", b"\x01")
        with opened(self.home / os.fsdecode(self.dice.choice(odd) + b"evil")) as file:
            file.write(b"odd\n")

    def deep(self) -> None:
        path = self.home / f"deep-{self.dice.randrange(3)}"
        removed(path)
        (path / "/".join(["evil"] * self.dice.choice((5, 31, 40, 300)))).mkdir(parents=True)

    def huge(self) -> None:
        """A sparse file of a terabyte, which mostly goes again. Where Ray's own log monitor does not look: it takes a
        line into memory, however long it is.
        """
        path = self.home / self.name()
        with opened(path) as file:
            file.truncate(self.dice.choice((1 << 30, HUGE_BYTES)))
        if self.dice.random() < 0.7:
            path.unlink()

    def truncate(self) -> None:
        path = self.place()
        with opened(path) as file:
            file.write(self.dice.randbytes(5000))
            file.truncate(self.dice.randrange(5000))

    def grow(self) -> None:
        with opened(self.home / f"growing-{self.dice.randrange(3)}.evil.log") as file:
            file.write(self.dice.randbytes(100_000))
            if file.tell() > 4 << 20:
                file.truncate(0)

    def rename(self) -> None:
        names = sorted(path for path in self.home.iterdir() if not path.is_dir())
        if len(names) > 1:
            first, second = self.dice.sample(names, 2)
            first.rename(second)

    def swap(self) -> None:
        """Put a link to the outside in the place of a folder, in one step, and back."""
        folder, link = self.home / "sub", self.home / "sub.other"
        folder.mkdir(exist_ok=True)
        (folder / "token").write_bytes(b"harmless evil\n")
        if not link.is_symlink() and not link.exists():
            link.symlink_to(self.outside)
        for _ in range(20):
            exchanged(folder, link)

    def odd_session(self) -> None:
        odd = (
            b"session_\xff",
            b"session_" + "é".encode() * 100,
            b"session_" + b"x" * 240,
            b"session_a\nb",
            b"session_",
        )
        path = self.root / os.fsdecode(self.dice.choice(odd))
        (path / "logs").mkdir(parents=True, exist_ok=True)
        os.utime(path, (self.dice.choice((-1, 3e9, 3e11)),) * 2)

    def other_session(self) -> None:
        """A session of its own making, whose `logs` is a link or a folder by turns."""
        session = self.root / f"session_2020-01-01_00-00-00_000000_{self.dice.randrange(5)}"
        session.mkdir(exist_ok=True)
        logs = session / "logs"
        removed(logs)
        if self.dice.random() < 0.5:
            logs.symlink_to(self.outside)
        else:
            logs.mkdir()
            (logs / "raylet.out").write_bytes(b"Setting node ID node_id=" + b"e" * 56 + b"\nevil\n")

    def latest(self) -> None:
        """For a moment another session is the latest one."""
        latest = self.root / "session_latest"
        target = latest.readlink()
        other = self.root / "evil_latest"
        removed(other)
        other.symlink_to(self.dice.choice(("/tmp/ray/session_2020-01-01_00-00-00_000000_1", "/", "x" * 3000)))
        other.rename(latest)
        time.sleep(self.dice.random() * 0.05)
        other.symlink_to(target)
        other.rename(latest)

    def fake_node(self) -> None:
        """Files from which a node's id is read, in sessions of its own making."""
        session = self.root / f"session_2020-01-01_00-00-00_000000_{self.dice.randrange(5)}"
        session.mkdir(exist_ok=True)
        bodies = (b"{" * 50_000, b"\xff" * 100, b'{"' + b"f" * 56 + b'": {}}', b"", self.dice.randbytes(300))
        (session / "ports_by_node.json").write_bytes(self.dice.choice(bodies))
        (session / f"metrics_agent_port_{self.dice.randbytes(28).hex()}").write_bytes(self.dice.choice(bodies))

    def many(self) -> None:
        folder = self.home / "many"
        removed(folder)
        folder.mkdir()
        for number in range(KEPT):
            (folder / f"{number}.evil").touch()

    def bomb(self) -> None:
        bomb = self.dice.choice(BOMBS)
        self.post(b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)

    def junk(self) -> None:
        junk = self.dice.choice(
            (b"[" * 100_000, self.dice.randbytes(1000), b'[{"eventType":"EVIL"}, {', b"", b"[1,2,3]")
        )
        self.post(b"Content-Length: %d\r\n\r\n" % len(junk) + junk)

    def sessions_in_events(self) -> None:
        names = [
            b'{"eventType":"EVIL","sessionName":"session_evil_%d"}' % self.dice.randrange(10**6) for _ in range(50)
        ]
        body = b"[" + b",".join(names) + b"]"
        self.post(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def stall(self) -> None:
        """A post that never ends, beside others."""
        self.hold(b"POST /v1/events HTTP/1.1\r\nContent-Length: %d\r\n\r\n[" % self.dice.choice((100, 70 << 20)))

    def drip(self) -> None:
        """Another byte of every post that is held."""
        for one in tuple(self.held):
            try:
                one.send(b" ")
            except OSError:
                self.held.remove(one)
                one.close()

    def scrape(self) -> None:
        """Half a request to the metrics address, or all of one that makes the collector poll."""
        head = self.dice.choice((b"GET /metrics HTTP/1.1\r\n", b"GET /last-poll HTTP/1.1\r\n\r\n", b"x" * 9000))
        with socket.create_connection(("127.0.0.1", self.metrics), timeout=0.2) as there:
            there.sendall(head)

    def hold(self, head: bytes) -> None:
        there = socket.create_connection(("127.0.0.1", self.sink), timeout=0.2)
        there.sendall(head)
        there.setblocking(False)
        self.held.append(there)
        while len(self.held) > HELD_CONNECTIONS:
            self.held.pop(0).close()

    def post(self, rest: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.sink), timeout=2) as there:
            there.sendall(b"POST /v1/events HTTP/1.1\r\nConnection: close\r\n" + rest)
            there.recv(1000)


def opened(path: Path) -> BinaryIO:
    """For appending; not through a link of our own, and without waiting for the reader of a FIFO of our own."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.fdopen(os.open(path, flags, 0o644), "ab")


def removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def exchanged(first: Path, second: Path) -> None:
    """Each gets the other's name, in one step."""
    here = -100  # AT_FDCWD
    ctypes.CDLL(None).renameat2(here, os.fsencode(first), here, os.fsencode(second), EXCHANGE)


def main(root: str, outside: str, sink: str, metrics: str, seconds: str, seed: str) -> None:
    neighbour = Neighbour(Path(root), Path(outside), int(sink), int(metrics), random.Random(int(seed)))
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        neighbour.act()
        time.sleep(PAUSE_SECONDS)
    print(json.dumps(neighbour.done))


if __name__ == "__main__":
    main(*sys.argv[1:])
