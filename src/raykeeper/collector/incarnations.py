"""Which raylets lived in a session directory: read from what Ray and a `postStart` hook left there.

A worker that is restarted in its pod gets a new node id in the same directory, so there may be several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from raykeeper.collector.node_ids import (
    HEAD_SERVER,
    parse_hook_file,
    parse_port_file_name,
    parse_raylet_log,
)
from raykeeper.collector.rayfolder import LOGS, Folder, ray_root, ray_session
from raykeeper.collector.start_time import is_possible, observe_first_file, zone_offset
from raykeeper.layout.records import Role
from raykeeper.times import from_ns, to_ns

HOOK_FILES = ("alibabacloud_raylet_node_id", "raylet_node_id", "init.log")
_HEAD_BYTES = 16 << 10  # the node id is in the third line or so; some versions print flags before it
MAX_NODES = 256
"""Of one session; further ones are not taken up. A pod that fails every five minutes has as many in a day."""
_HOOK_BYTES = 1 << 20  # a hook that waits for its raylet writes a line every second
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
    for seen in (*_port_files(session), *_raylet_logs(session)):
        known = found.get(seen.node_id)
        found[seen.node_id] = _merged(known, seen) if known else seen
    return sorted(found.values(), key=lambda node: (node.appeared_ns, node.log_index or 0))[-MAX_NODES:]


def observe_hook_files(root: Path, session: Path, *, is_first: bool) -> NodeIncarnation | None:
    """What a `postStart` hook wrote beside the sessions: the node of this one, if it is the last one.

    Where there was a session before, what is older than this one was written for that: Ray's container was restarted,
    and the hook waits for its raylet.
    """
    first_file = None if is_first else observe_first_file(session)
    began_ns = to_ns(first_file) if first_file else 0
    for name in HOOK_FILES:
        try:
            with ray_root(root) as folder:
                hook = folder.read(name, _HOOK_BYTES)
        except OSError:
            continue
        if hook.mtime_ns >= began_ns and (node_id := parse_hook_file(hook.data.decode(errors="replace"))):
            return NodeIncarnation(node_id, hook.mtime_ns)
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
        with ray_session(session) as folder:
            for entry in folder.list().entries:
                if parsed := parse_port_file_name(entry.name):
                    nodes.setdefault(parsed[1], {})[parsed[0]] = folder.changed_ns(entry.name)
    except OSError:
        return
    for node_id, servers in nodes.items():
        yield NodeIncarnation(node_id, min(servers.values()), "head" if HEAD_SERVER in servers else None)


def _raylet_logs(session: Path) -> Iterator[NodeIncarnation]:
    try:
        with ray_session(session, LOGS) as logs:
            for index in range(MAX_NODES):
                name = "raylet.out" if index == 0 else f"raylet.{index}.out"
                if not logs.changed_ns(name):
                    return
                if node := _raylet_log(logs, name, index):
                    yield node
    except OSError:
        return


def _raylet_log(logs: Folder, name: str, index: int) -> NodeIncarnation | None:
    try:
        log = logs.read(name, _HEAD_BYTES)
    except OSError:
        return None
    parsed = parse_raylet_log(log.data.decode(errors="replace"))
    if parsed is None or not is_possible(parsed[1]):
        return None
    node_id, local = parsed
    said_at = _in_utc(local, _observe_start(logs, index))
    # Should the zone be unknown all the same: that a file is not older than its last write always holds.
    return NodeIncarnation(node_id, min(to_ns(said_at), log.mtime_ns), log_index=index)


def _in_utc(local: datetime, began: datetime | None) -> datetime:
    """When Ray's clock read `local`: Ray's image has its own time zone, in which its logs are, and ours another."""
    offset = zone_offset(local, began) if began else None
    return local.replace(tzinfo=None).astimezone(UTC) if offset is None else local - offset


def _observe_start(logs: Folder, index: int) -> datetime | None:
    """When the raylet of that number started, by files that are made then and mostly stay empty."""
    number = f".{index}" if index else ""
    times = [changed for name in _MADE_AT_START if (changed := logs.changed_ns(f"{name}{number}.err"))]
    return from_ns(min(times)) if times else None
