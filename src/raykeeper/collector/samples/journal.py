"""Rows that are not sealed yet, on the collector's own disk: a collector that is killed goes on with them.

They are not synced one by one: what only a crash of the whole machine takes along is in the last heartbeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from raykeeper.collector.events.durable import make_folder, read_file
from raykeeper.collector.records import NodePlace
from raykeeper.layout.names import is_session_name
from raykeeper.layout.samples import Sample
from raykeeper.logs import Log

_MAX_BYTES = 16 << 20
"""Read at a start. An hour of a node with 64 GPUs has 1.5 MB."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC

log = Log("raykeeper.collector.samples")


class _Header(msgspec.Struct, frozen=True):
    """The first line: whose rows they are."""

    session: str
    node_id: str


class SampleJournal:
    """The file of one node's unsealed rows. A disk that takes no more is complained of once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._has_complained = False

    def load(self) -> tuple[NodePlace, list[Sample]] | None:
        """What an earlier life left; None if there is nothing, or nothing of ours. Blocks."""
        try:
            lines = read_file(self._file, _MAX_BYTES).splitlines()
        except OSError:
            return None
        try:
            header = msgspec.json.decode(lines[0], type=_Header) if lines else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            header = None
        if header is None or not is_session_name(header.session) or not header.node_id:
            return None
        rows = [row for line in lines[1:] if (row := _row(line))]
        return ((header.session, header.node_id), rows) if rows else None

    def begin(self, place: NodePlace, rows: Sequence[Sample]) -> None:
        """Have these rows of this node alone. Blocks."""
        lines = [msgspec.json.encode(_Header(*place)), *map(msgspec.json.encode, rows)]
        with self._told_once():
            make_folder(self._file.parent)
            self._file.unlink(missing_ok=True)
            self._write(b"\n".join(lines), _NEW)

    def append(self, row: Sample) -> None:
        """Blocks."""
        with self._told_once():
            self._write(b"\n" + msgspec.json.encode(row), _APPEND)  # so that half a line spoils no other

    def _write(self, data: bytes, flags: int) -> None:
        descriptor = os.open(self._file, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    @contextmanager
    def _told_once(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            if not self._has_complained:
                self._has_complained = True
                log.warning("samples are not kept on disk, a restart loses some", file=str(self._file), cause=str(exc))


def _row(line: bytes) -> Sample | None:
    try:
        return msgspec.json.decode(line, type=Sample)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # a line that a crash cut
