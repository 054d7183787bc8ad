"""Which raylets lived in a session directory: read from what Ray and a `postStart` hook left there.

A worker that is restarted in its pod gets a new node id in the same directory, so there may be several.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from raykeeper.collector.node_ids import (
    HEAD_SERVER,
    parse_hook_file,
    parse_port_file_name,
    parse_raylet_log,
)
from raykeeper.collector.start_time import observe_first_file, zone_offset
from raykeeper.layout.records import Role

HOOK_FILES = ("alibabacloud_raylet_node_id", "raylet_node_id", "init.log")
_HEAD_BYTES = 16 << 10  # the node id is in the third line or so; some versions print flags before it
_HOOK_BYTES = 1 << 20  # a hook that waits for its raylet writes a line every second
_NANOSECONDS = 1_000_000_000
_MADE_AT_START = ("raylet", "dashboard_agent", "runtime_env_agent")


@dataclass(frozen=True)
class NodeIncarnation:
    """One raylet's life in a session directory."""

    node_id: str
    appeared_ns: int
    """When it began as far as files tell, in nanoseconds since 1970."""
    role: Role | None = None
    log_index: int | None = None
    """The number in the names of its component logs: 1 for `raylet.1.out`, 0 for `raylet.out`."""


def observe_incarnations(session: Path) -> list[NodeIncarnation]:
    """What the session directory itself tells, oldest first. What cannot be read tells nothing."""
    found: dict[str, NodeIncarnation] = {}
    for seen in (*_port_files(session), *_raylet_logs(session / "logs")):
        known = found.get(seen.node_id)
        found[seen.node_id] = _merged(known, seen) if known else seen
    return sorted(found.values(), key=lambda node: (node.appeared_ns, node.log_index or 0))


def observe_hook_files(root: Path, session: Path, *, is_first: bool) -> NodeIncarnation | None:
    """What a `postStart` hook wrote beside the sessions: the node of this one, if it is the last one.

    Where there was a session before, what is older than this one was written for that: Ray's container was restarted,
    and the hook waits for its raylet.
    """
    first_file = None if is_first else observe_first_file(session)
    began_ns = int(first_file.timestamp() * _NANOSECONDS) if first_file else 0
    for name in HOOK_FILES:
        try:
            text = (root / name).read_bytes()[:_HOOK_BYTES].decode(errors="replace")
            written_ns = (root / name).stat().st_mtime_ns
        except OSError:
            continue
        if written_ns >= began_ns and (node_id := parse_hook_file(text)):
            return NodeIncarnation(node_id, written_ns)
    return None


def _merged(known: NodeIncarnation, seen: NodeIncarnation) -> NodeIncarnation:
    return NodeIncarnation(
        known.node_id,
        min(known.appeared_ns, seen.appeared_ns),
        known.role or seen.role,
        seen.log_index if known.log_index is None else known.log_index,
    )


def _port_files(session: Path) -> Iterator[NodeIncarnation]:
    nodes: dict[str, dict[str, int]] = {}
    try:
        with os.scandir(session) as entries:
            for entry in entries:
                if parsed := parse_port_file_name(entry.name):
                    nodes.setdefault(parsed[1], {})[parsed[0]] = entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return
    for node_id, servers in nodes.items():
        yield NodeIncarnation(node_id, min(servers.values()), "head" if HEAD_SERVER in servers else None)


def _raylet_logs(logs: Path) -> Iterator[NodeIncarnation]:
    index = 0
    while (file := logs / ("raylet.out" if index == 0 else f"raylet.{index}.out")).exists():
        if node := _raylet_log(file, index):
            yield node
        index += 1


def _raylet_log(file: Path, index: int) -> NodeIncarnation | None:
    try:
        with file.open("rb") as log:
            parsed = parse_raylet_log(log.read(_HEAD_BYTES).decode(errors="replace"))
            written_ns = os.fstat(log.fileno()).st_mtime_ns
    except OSError:
        return None
    if parsed is None:
        return None
    node_id, local = parsed
    said_at = _in_utc(local, _observe_start(file.parent, index))
    # Should the zone be unknown all the same: that a file is not older than its last write always holds.
    return NodeIncarnation(node_id, min(int(said_at.timestamp() * _NANOSECONDS), written_ns), log_index=index)


def _in_utc(local: datetime, began: datetime | None) -> datetime:
    """When Ray's clock read `local`: Ray's image has its own time zone, in which its logs are, and ours another."""
    offset = zone_offset(local, began) if began else None
    return local.replace(tzinfo=None).astimezone(UTC) if offset is None else local - offset


def _observe_start(logs: Path, index: int) -> datetime | None:
    """When the raylet of that number started, by files that are made then and mostly stay empty."""
    number = f".{index}" if index else ""
    times = []
    for name in _MADE_AT_START:
        with suppress(OSError):
            times.append((logs / f"{name}{number}.err").stat().st_mtime)
    return datetime.fromtimestamp(min(times), UTC) if times else None
