"""What is on disk below Ray's temporary folder: sessions and the nodes that lived in them.

Polled, about once a second: inotify's limits are per user and often used up on a node full of pods.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.collector.incarnations import NodeIncarnation, observe_hook_files, observe_incarnations
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.logs import Log

POLL_SECONDS = 1.0
SETTLE_SECONDS = 60.0
"""A session that did not change for this long is looked into only when it changes again."""
LATEST = "session_latest"
_PREFIX = "session_"

log = Log("raykeeper.collector.sessions")


@dataclass(frozen=True)
class SessionOnDisk:
    """One `session_…` directory and the raylets seen in it, oldest first."""

    name: str
    path: Path
    incarnations: tuple[NodeIncarnation, ...] = ()

    @property
    def logs(self) -> Path:
        return self.path / "logs"


@dataclass(frozen=True)
class SessionAppeared:
    """Ray made a new session directory, or it was there at the start."""

    session: SessionOnDisk


@dataclass(frozen=True)
class NodeAppeared:
    """A raylet began its life in a session."""

    session: SessionOnDisk
    node: NodeIncarnation


@dataclass(frozen=True)
class RayletGone:
    """Nobody listens at the current session's raylet socket any more."""

    session: SessionOnDisk
    node_id: str | None


SessionEvent = SessionAppeared | NodeAppeared | RayletGone
Listener = Callable[[SessionEvent], None]


class SessionWatch:
    """Knows the sessions below one folder. `poll` looks once, `run` for ever; listeners hear what is new.

    Guarantees: what `sessions` and `current_session` answer may be read in any thread.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._sessions: dict[str, SessionOnDisk] = {}
        self._by_name: tuple[SessionOnDisk, ...] = ()
        self._current: str | None = None
        self._listeners: list[Listener] = []
        self._changes: dict[str, tuple[tuple[int, ...], float]] = {}
        self._is_listening: bool | None = None

    def listen(self, listener: Listener) -> None:
        """Have it called with every event from now on; what is known already is told at once."""
        self._listeners.append(listener)
        for session in self._sessions.values():
            listener(SessionAppeared(session))
            for node in session.incarnations:
                listener(NodeAppeared(session, node))

    def sessions(self) -> tuple[SessionOnDisk, ...]:
        """Every session directory there is, by name."""
        return self._by_name

    def current_session(self) -> str | None:
        """The target of `session_latest`, else the session directory that changed last."""
        return self._current

    def node_of(self, session: str) -> str | None:
        """The node that appeared last in a session; None while none is known."""
        known = self._sessions.get(session)
        return known.incarnations[-1].node_id if known and known.incarnations else None

    def node_at(self, session: str, moment_ns: int) -> str | None:
        """The node that was there at that moment, or the first that was ever; None while none is known."""
        known = self._sessions.get(session)
        nodes = known.incarnations if known else ()
        there = [node for node in nodes if node.appeared_ns <= moment_ns] or nodes[:1]
        return there[-1].node_id if there else None

    def replaced_ns(self, session: str, node_id: str) -> int:
        """When the next node of the pod appeared after that one, in nanoseconds since 1970; 0 if none has."""
        nodes = [(known.name, node) for known in self._by_name for node in known.incarnations]
        began = next((node.appeared_ns for name, node in nodes if (name, node.node_id) == (session, node_id)), 0)
        return min((node.appeared_ns for _, node in nodes if node.appeared_ns > began), default=0) if began else 0

    @property
    def raylet_listens(self) -> bool | None:
        """Whether the current session's raylet takes connections; None if that cannot be told."""
        return self._is_listening

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            try:
                self.poll()
            except Exception:
                log.exception("looking for sessions failed", root=str(self._root))
            await asyncio.sleep(POLL_SECONDS)

    def poll(self) -> None:
        """Look once. Costs a few system calls per session."""
        paths = self._session_paths()
        for name in self._sessions.keys() - paths.keys():
            del self._sessions[name], self._changes[name]
        self._current = self._latest(paths)
        for name, path in paths.items():
            if name not in self._sessions:
                self._sessions[name] = SessionOnDisk(name, path)
                log.info("session found", session=name)
                self._tell(SessionAppeared(self._sessions[name]))
        for name in paths:
            if self._may_have_news(self._sessions[name]):
                self._look_for_nodes(name)
        self._by_name = tuple(sorted(self._sessions.values(), key=lambda session: session.name))
        self._ask_raylet()

    def _session_paths(self) -> dict[str, Path]:
        try:
            with os.scandir(self._root) as entries:
                return {
                    entry.name: self._root / entry.name
                    for entry in entries
                    if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False)
                }
        except OSError:  # Ray has not started yet, or keeps its folder to itself
            return {}

    def _latest(self, paths: dict[str, Path]) -> str | None:
        try:
            # Only the name counts: the link holds a path as Ray's container sees it, ours may be another.
            target = (self._root / LATEST).readlink().name
        except OSError:
            target = ""
        if target in paths:
            return target
        return max(paths, key=lambda name: (_changed_ns(paths[name]), name), default=None)

    def _may_have_news(self, session: SessionOnDisk) -> bool:
        """Whether a node may be found that is not known yet: decided by what a few `stat` calls say."""
        places = (session.path, session.logs, session.path / "ports_by_node.json")
        now, mark = self._clock.steady(), tuple(_changed_ns(place) for place in places)
        known, since = self._changes.get(session.name, ((), now))
        self._changes[session.name] = (mark, since if known == mark else now)
        return not session.incarnations or known != mark or now - since < SETTLE_SECONDS

    def _look_for_nodes(self, name: str) -> None:
        session = self._sessions[name]
        known = {node.node_id: node for node in session.incarnations}
        seen = observe_incarnations(session.path)
        if name == self._current and not seen:
            hooked = observe_hook_files(self._root, session.path, is_first=len(self._sessions) == 1)
            seen = [hooked] if hooked else []
        for node in seen:
            known[node.node_id] = _kept(known.get(node.node_id), node)
        nodes = tuple(sorted(known.values(), key=lambda node: (node.appeared_ns, node.log_index or 0)))
        if nodes == session.incarnations:
            return
        new = [node for node in nodes if node.node_id not in {old.node_id for old in session.incarnations}]
        self._sessions[name] = session = replace(session, incarnations=nodes)
        for node in new:
            log.info("node found", session=name, node_id=node.node_id, role=node.role)
            self._tell(NodeAppeared(session, node))

    def _ask_raylet(self) -> None:
        if self._current is None:
            return
        listens = raylet_listens(self._sessions[self._current].path)
        if self._is_listening and listens is False:
            node_id = self.node_of(self._current)
            log.info("raylet gone", session=self._current, node_id=node_id)
            self._tell(RayletGone(self._sessions[self._current], node_id))
        self._is_listening = listens

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            listener(event)


def _kept(known: NodeIncarnation | None, seen: NodeIncarnation) -> NodeIncarnation:
    """What is known of a node, with what was learned now. When it appeared is what was seen first."""
    if known is None:
        return seen
    index = seen.log_index if known.log_index is None else known.log_index
    return replace(known, role=known.role or seen.role, log_index=index)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
