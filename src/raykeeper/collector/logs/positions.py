"""What the bucket has of each file, kept on the collector's own disk.

A log of positions, the last line of a generation wins. It is written anew when most of it is out of date. A line is
durable once `remember` returns, so a restart repeats at most the pack that was under way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from raykeeper.collector.events.durable import read_file, write_new
from raykeeper.collector.logs.tracked import UNKNOWN_TIME, Signature, TrackedFile
from raykeeper.logs import Log

_COMPACT_FACTOR = 4
_COMPACT_FLOOR_BYTES = 1 << 20
_TORN = 1 << 62
_MAX_BYTES = 64 << 20
"""Read at a start; of 50,000 files a quarter. A longer one is not ours: all logs are sent again."""
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC

log = Log("raykeeper.collector.logs")


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line."""

    session: str
    generation: str
    inode: int
    path: str
    node_id: str | None
    sent: int
    size: int
    head: bytes
    tail: bytes
    is_whole: bool
    digest: bytes
    told_name: str
    is_gone: bool = False
    """The file needs no position any more."""


class Positions:
    """The file of positions. A disk that takes no more is complained of once: only a restart would miss it.

    Without a file nothing is remembered: for a shipper that nobody starts again.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, bytes] = {}
        self._live_bytes = 0
        self._size = 0
        self._descriptor: int | None = None
        self._has_complained = False

    def load(self, first_seen: float) -> list[TrackedFile]:
        """The files as they were known before; none if nothing can be read."""
        positions: dict[str, Position] = {}
        for line in self._lines():
            try:
                position = msgspec.json.decode(line, type=Position)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the end of a line that a crash cut, or of the disk
            positions[position.generation] = position
            self._learn(position, line)
        self._compact()
        return [_tracked(position, first_seen) for position in positions.values() if not position.is_gone]

    def remember(self, files: Iterable[TrackedFile], *, is_gone: bool = False, is_urgent: bool = True) -> None:
        """Append where each file stands; on disk before this returns, unless it is not urgent."""
        lines = []
        for file in files:
            position = _position(file, is_gone)
            lines.append(line := msgspec.json.encode(position))
            self._learn(position, line)
        if lines:
            self._append(b"".join(line + b"\n" for line in lines), is_urgent)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lines(self) -> list[bytes]:
        if self._file is None:
            return []
        try:
            return read_file(self._file, _MAX_BYTES).splitlines()
        except FileNotFoundError:
            return []
        except OSError as exc:
            log.warning("positions of logs cannot be read, all logs are sent again", reason=str(exc))
            return []

    def _learn(self, position: Position, line: bytes) -> None:
        self._live_bytes -= len(self._known.pop(position.generation, b""))
        if not position.is_gone:
            self._known[position.generation] = line
            self._live_bytes += len(line)

    def _append(self, data: bytes, is_urgent: bool) -> None:
        if self._file is None:
            return
        try:
            if self._size + len(data) > max(_COMPACT_FLOOR_BYTES, _COMPACT_FACTOR * self._live_bytes):
                self._compact()
                return
            if self._descriptor is None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._file, _APPEND, 0o600)
            self._size += len(data)
            if os.write(self._descriptor, data) < len(data):
                self._size = _TORN  # so that the next line does not continue half a line
            if is_urgent:
                os.fdatasync(self._descriptor)
        except OSError as exc:
            self._complain(exc)

    def _compact(self) -> None:
        """Write what is known now in place of the old file, in one step."""
        if self._file is None:
            return
        scratch = self._file.with_name(f"{self._file.name}.new")
        data = b"".join(line + b"\n" for line in self._known.values())
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_new(scratch, data)
            scratch.replace(self._file)
        except OSError as exc:
            self._complain(exc)
            return
        self.close()
        self._size = len(data)

    def _complain(self, exc: OSError) -> None:
        if not self._has_complained:
            self._has_complained = True
            log.warning("positions of logs cannot be written", file=str(self._file), reason=str(exc))


def _position(file: TrackedFile, is_gone: bool) -> Position:
    return Position(
        file.session,
        file.generation,
        file.inode,
        file.name,
        file.node_id,
        file.sent,
        file.size,
        *file.signature,
        file.is_whole,
        file.sent_digest,
        file.told_name,
        is_gone,
    )


def _tracked(position: Position, first_seen: float) -> TrackedFile:
    """A file whose times are unknown, so that the first look checks it."""
    return TrackedFile(
        session=position.session,
        inode=position.inode,
        path=position.path,
        generation=position.generation,
        first_seen=first_seen,
        is_whole=position.is_whole,
        node_id=position.node_id,
        sent=position.sent,
        signature=Signature(position.head, position.tail),
        sent_digest=position.digest,
        told_name=position.told_name,
        size=position.size,
        mtime_ns=UNKNOWN_TIME,
    )
