"""Sessions left on a disk into a store of ours.

A collector may have stored a part of such a session: what is in the store stays as it is, the disk adds to it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from raykeeper.history.importing.disksessions import DiskSession, log_files, node_of
from raykeeper.history.importing.packing import LogSource, Piece
from raykeeper.history.importing.tally import Say, Tally
from raykeeper.history.importing.writing import Make, SessionWriter
from raykeeper.layout.keys import (
    CatalogKey,
    closed_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.records import CatalogStart, ClosedRecord, NodeRecord, SessionRecord
from raykeeper.storage.store import ObjectStore

CLOSED_REASON = "imported from a disk: the last time that a log was written"
_INTERVAL_SECONDS = 30.0


class DiskImport:
    """One import from one machine's disk."""

    def __init__(self, target: ObjectStore, say: Say, *, node_id: str = "", is_dry_run: bool = False) -> None:
        self.tally = Tally()
        self._target = target
        self._say = say
        self._node_id = node_id
        self._is_dry_run = is_dry_run

    async def run(self, sessions: Sequence[DiskSession]) -> Tally:
        for session in sessions:
            await self._import(session)
            self.tally.sessions += 1
            self._say(f"{session.id}: done")
        return self.tally

    async def _import(self, session: DiskSession) -> None:
        writer = SessionWriter(self._target, session.id, self.tally, self._say, is_dry_run=self._is_dry_run)
        await writer.begin()
        is_new = not writer.has(session_record_key(session.id))
        await writer.add_all((key, path.stat().st_size, _reader(path)) for key, path in session.segments.items())
        node = await self._add_logs(session, writer)
        if is_new:
            await self._add_records(session, node, writer)

    async def _add_logs(self, session: DiskSession, writer: SessionWriter) -> NodeRecord | None:
        """The node whose logs they are, if there are any."""
        if session.folder is None or session.logs is None:
            return None
        known_id, is_head = await asyncio.to_thread(node_of, session.folder)
        node_id = self._node_id or known_id or f"unknown-{socket.gethostname()}"
        found = await asyncio.to_thread(lambda: list(log_files(session.logs or Path())))
        files = [source for source, path in found if self._is_readable(path)]
        await writer.add_logs(node_id, files, read_piece)
        return NodeRecord(
            node_id=node_id,
            role="head" if is_head else "worker",
            started_at=session.started_at,
            beat_at=_last_written(session, files),
            interval_seconds=_INTERVAL_SECONDS,
            hostname=socket.gethostname(),
        )

    async def _add_records(self, session: DiskSession, node: NodeRecord | None, writer: SessionWriter) -> None:
        """What makes a session of it, the list's entry last."""
        id_ = session.id
        names = {"namespace": id_.namespace, "cluster": id_.cluster, "session": id_.session}
        head_id = node.node_id if node and node.role == "head" else ""
        started = session.started_at
        if node is not None:
            await writer.add_record(node_record_key(id_, node.node_id), node)
            closed = ClosedRecord(closed_at=node.beat_at, reason=CLOSED_REASON, cluster_uid="")
            await writer.add_record(closed_record_key(id_), closed)
        record = SessionRecord(**names, started_at=started, recorded_at=started, head_node_id=head_id)
        await writer.add_record(session_record_key(id_), record)
        start = CatalogStart(**names, started_at=started, head_node_id=head_id)
        await writer.add_record(CatalogKey(started.date(), id_, "start").key, start)

    def _is_readable(self, path: Path) -> bool:
        if os.access(path, os.R_OK):
            return True
        self.tally.unreadable.append(f"{path}: not readable for this user")
        return False


def _last_written(session: DiskSession, files: Sequence[LogSource]) -> datetime:
    newest = max((file.written_ns for file in files), default=None)
    return session.started_at if newest is None else datetime.fromtimestamp(newest / 1e9, UTC)


def _reader(path: Path) -> Make:
    async def read() -> bytes:
        return await asyncio.to_thread(path.read_bytes)

    return read


async def read_piece(piece: Piece) -> bytes:
    """The bytes of a file that nobody writes to any more; one that became shorter gives what it has."""

    def read() -> bytes:
        with Path(piece.file.place).open("rb") as file:
            return os.pread(file.fileno(), piece.length, piece.offset)

    return await asyncio.to_thread(read)
