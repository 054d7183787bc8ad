"""Sessions left on a disk into a store of ours.

A collector may have stored a part of such a session: what is in the store stays as it is, the disk adds to it.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from raykeeper.history.commands.import_sessions.writing import LogSource, Make, Piece, Say, SessionWriter, Tally
from raykeeper.layout.keys import (
    DATA_PREFIX,
    CatalogKey,
    SealedKey,
    SessionId,
    closed_record_key,
    node_record_key,
    parse_sealed_key,
    session_record_key,
)
from raykeeper.layout.logs import generation_name
from raykeeper.layout.records import CatalogStart, ClosedRecord, NodeRecord, SessionRecord
from raykeeper.storage.store import ObjectStore
from raykeeper.times import EPOCH, from_ns

SPOOL_FOLDER = "event-data"
"""Beside Ray's session folders, unless the collector was told otherwise."""
_SESSION = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})(_\d+)?")
_PORT_FILE = re.compile(r"(?P<server>[a-z_]+)_port_(?P<node_id>[0-9a-f]{56})")
_RAYLET_LINE = re.compile(rb"Setting node ID node_id=([0-9a-f]{56})")
_FIRST_BYTES = 64 * 1024  # of a raylet's log: it says its id among its first lines


@dataclass
class DiskSession:
    """What there is of one session."""

    id: SessionId
    folder: Path | None = None
    """Ray's own folder, if it is there."""
    segments: dict[str, Path] = field(default_factory=dict)
    """Unsent objects by key."""

    @property
    def started_at(self) -> datetime:
        """As its name says, which is by the clock and time zone of the machine that the folder is on."""
        found = _SESSION.fullmatch(self.id.session)
        if found is None:
            return EPOCH
        return datetime.strptime(found[1], "%Y-%m-%d_%H-%M-%S_%f").astimezone(UTC)

    @property
    def logs(self) -> Path | None:
        return self.folder / "logs" if self.folder else None


def _session_folders(folder: Path) -> list[Path]:
    """The folder itself if it is a session's, else the sessions directly below it."""
    candidates = [folder, *(sorted(folder.iterdir()) if folder.is_dir() else [])]
    found = [path for path in candidates if _is_session(path)]
    return found[:1] if found[:1] == [folder] else found


def find_sessions(folder: Path, spool: Path | None, namespace: str, cluster: str) -> list[DiskSession]:
    """Sessions below the folder and in the spool. Whose cluster is not told by the spool gets these names."""
    found: dict[SessionId, DiskSession] = {}
    folders = _session_folders(folder)
    for path in _spools(folder, spool):
        for key, file in _unsent_segments(path):
            found.setdefault(key.session, DiskSession(key.session)).segments[key.key] = file
    is_one = folders == [folder]
    if is_one:
        found = {id_: session for id_, session in found.items() if id_.session == folder.name}
    for path in folders:
        id_ = next((id_ for id_ in found if id_.session == path.name), SessionId(namespace, cluster, path.name))
        found.setdefault(id_, DiskSession(id_)).folder = path
    return [found[id_] for id_ in sorted(found)]


def _unsent_segments(spool: Path) -> Iterator[tuple[SealedKey, Path]]:
    """Objects that a collector sealed and kept, each at the path of its key."""
    for file in sorted(spool.rglob("*")):
        _, marker, rest = file.as_posix().partition(f"/{DATA_PREFIX}")
        facts = parse_sealed_key(f"{DATA_PREFIX}{rest}") if marker and file.is_file() else None
        if facts:
            yield facts, file


def node_of(folder: Path) -> tuple[str, bool]:
    """The id of the node whose disk this is (empty if nothing tells it), and whether it was the head."""
    ports = [found for path in sorted(folder.iterdir()) if (found := _PORT_FILE.fullmatch(path.name))]
    heads = [found["node_id"] for found in ports if found["server"] == "gcs_server"]
    is_head = bool(heads) or (folder / "logs" / "gcs_server.out").is_file()
    known = [*(found["node_id"] for found in ports), *_raylet_ids(folder / "logs")]
    return next(iter([*heads, *known]), ""), is_head


def log_files(logs: Path) -> Iterator[tuple[LogSource, Path]]:
    """Every file below `logs/`, without following links out of it."""
    for path in sorted(logs.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        stat = path.stat()
        generation = generation_name(stat.st_mtime_ns, stat.st_ino)
        name = os.fsencode(path.relative_to(logs)).decode(errors="replace")  # a name is any bytes to Linux
        yield LogSource(name, generation, str(path), stat.st_size, stat.st_mtime_ns), path


def _raylet_ids(logs: Path) -> Iterable[str]:
    for path in sorted(logs.glob("raylet*.out")):
        with path.open("rb") as file:
            if found := _RAYLET_LINE.search(file.read(_FIRST_BYTES)):
                yield found[1].decode()


def _is_session(path: Path) -> bool:
    return bool(_SESSION.fullmatch(path.name)) and not path.is_symlink() and (path / "logs").is_dir()


def _spools(folder: Path, spool: Path | None) -> list[Path]:
    """Where unsent segments may be: the folder that was named, or those where collectors keep them."""
    if spool is not None:
        return [spool]
    usual = [folder / SPOOL_FOLDER, folder.parent / SPOOL_FOLDER] if _session_folders(folder) else [folder]
    return [path for path in usual if path.is_dir()]


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
    return session.started_at if newest is None else from_ns(newest)


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
