"""Notices when the raylet beside us ends, and whether it was asked to or was killed.

A raylet that is asked to end (SIGTERM, a drain) writes that into its log and removes its socket. One that is killed or
aborts leaves the socket behind. One whose agent died ends in good order as well, but says that it did not expect to.
A collector that starts beside a dead raylet tells its end by its last log lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.collector.incarnations import NodeIncarnation
from raykeeper.collector.rayfolder import LOGS, ray_session
from raykeeper.collector.raylet_socket import raylet_sockets
from raykeeper.times import from_ns

START_SECONDS = 15.0
"""How long a raylet that was never heard may take to open its socket; its node id is known a moment before."""
_LOG_END_BYTES = 1 << 20  # a raylet goes on writing while it drains, for half a minute
_ASKED = b"SIGTERM"
_FAILED = b"reason: UNEXPECTED_TERMINATION"
"""Ray's agents and its raylet live and die together: the kernel that kills an agent for its memory ends the node."""


@dataclass(frozen=True)
class RayletEnd:
    """When a raylet ended, and how."""

    at: datetime
    was_killed: bool
    """Nobody had asked it to end: it was killed, aborted, or lost its agent."""


class RayletEnds:
    """The ends of the raylets of one pod. A raylet that ended never comes back: the next one has another node id.

    One that was never heard and is heard after all had only taken long to start, so its end is taken back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard: set[str] = set()
        self._silent_since: dict[str, float] = {}
        self._ends: dict[str, RayletEnd] = {}

    def end_of(self, node_id: str) -> RayletEnd | None:
        """None while the raylet lives, or where that cannot be told."""
        return self._ends.get(node_id)

    def is_alive(self, node_id: str) -> bool:
        """Whether the raylet was heard, and has not ended since."""
        return node_id in self._heard and node_id not in self._ends

    def look(self, session: Path, node: NodeIncarnation, *, listens: bool | None) -> None:
        """Note what is seen of the newest raylet of the current session."""
        if listens:
            if node.node_id not in self._heard:
                self._ends.pop(node.node_id, None)
            self._heard.add(node.node_id)
            self._silent_since.pop(node.node_id, None)
        elif listens is False and node.node_id not in self._ends:
            silent_since = self._silent_since.setdefault(node.node_id, self._clock.steady())
            now = RayletEnd(self._clock.now(), _was_killed(session, node))
            if node.node_id in self._heard:
                self._ends[node.node_id] = now
            elif self._clock.steady() - silent_since >= START_SECONDS:
                self._ends[node.node_id] = find_unseen_end(session, node, is_last=True) or now


def find_unseen_end(session: Path, node: NodeIncarnation, *, is_last: bool) -> RayletEnd | None:
    """The end of a raylet that nobody watched, by its last log lines; None where it left none."""
    at = _last_sign_of_life(session, node, is_last=is_last)
    return None if at is None else RayletEnd(at, _was_killed(session, node))


def _was_killed(session: Path, node: NodeIncarnation) -> bool:
    """Whether nobody asked a raylet to end, and it says so itself or left its socket behind."""
    log = _log_end(session, node)
    asked_at, failed_at = log.find(_ASKED), log.find(_FAILED)
    if failed_at >= 0 and not 0 <= asked_at < failed_at:
        return True
    return asked_at < 0 and False in (raylet_sockets(session) or ())


def _last_sign_of_life(session: Path, node: NodeIncarnation, *, is_last: bool) -> datetime | None:
    """When a node last wrote into its logs: any of them if it is the session's last node, else its own components'."""
    try:
        with ray_session(session, LOGS) as logs:
            names = [e.name for e in logs.list().entries if e.is_file] if is_last else _component_logs(node)
            last_ns = max(map(logs.changed_ns, names), default=0)
    except OSError:
        return None
    return from_ns(last_ns or None)


def _log_end(session: Path, node: NodeIncarnation) -> bytes:
    try:
        with ray_session(session, LOGS) as logs:
            return logs.read_end(_component_logs(node)[0], _LOG_END_BYTES)
    except OSError:
        return b""


def _component_logs(node: NodeIncarnation) -> tuple[str, str]:
    number = f".{node.log_index}" if node.log_index else ""
    return f"raylet{number}.out", f"gcs_server{number}.out"
