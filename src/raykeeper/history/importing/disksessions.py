"""Sessions left on a disk: Ray's session folders with their logs, and segments that a collector could not send."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from raykeeper.history.importing.packing import LogSource
from raykeeper.layout.keys import DATA_PREFIX, SealedKey, SessionId, parse_sealed_key
from raykeeper.layout.logs import generation_name

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
            return datetime.fromtimestamp(0, UTC)
        return datetime.strptime(found[1], "%Y-%m-%d_%H-%M-%S_%f").astimezone(UTC)

    @property
    def logs(self) -> Path | None:
        return self.folder / "logs" if self.folder else None


def session_folders(folder: Path) -> list[Path]:
    """The folder itself if it is a session's, else the sessions directly below it."""
    candidates = [folder, *(sorted(folder.iterdir()) if folder.is_dir() else [])]
    found = [path for path in candidates if _is_session(path)]
    return found[:1] if found[:1] == [folder] else found


def find_sessions(folder: Path, spool: Path | None, namespace: str, cluster: str) -> list[DiskSession]:
    """Sessions below the folder and in the spool. Whose cluster is not told by the spool gets these names."""
    found: dict[SessionId, DiskSession] = {}
    folders = session_folders(folder)
    for path in _spools(folder, spool):
        for key, file in unsent_segments(path):
            found.setdefault(key.session, DiskSession(key.session)).segments[key.key] = file
    is_one = folders == [folder]
    if is_one:
        found = {id_: session for id_, session in found.items() if id_.session == folder.name}
    for path in folders:
        id_ = next((id_ for id_ in found if id_.session == path.name), SessionId(namespace, cluster, path.name))
        found.setdefault(id_, DiskSession(id_)).folder = path
    return [found[id_] for id_ in sorted(found)]


def unsent_segments(spool: Path) -> Iterator[tuple[SealedKey, Path]]:
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
    usual = [folder / SPOOL_FOLDER, folder.parent / SPOOL_FOLDER] if session_folders(folder) else [folder]
    return [path for path in usual if path.is_dir()]
