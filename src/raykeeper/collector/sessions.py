"""What is on disk below Ray's temporary folder: sessions and the nodes that lived in them.

Polled, about once a second: inotify's limits are per user and often used up on a node full of pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from raykeeper.clock import Clock
from raykeeper.collector.incarnations import MAX_NODES, NodeIncarnation, observe_hook_files, observe_incarnations
from raykeeper.collector.rayfolder import LOGS, Folder, is_session_folder, ray_root
from raykeeper.collector.raylet_ends import RayletEnd, RayletEnds
from raykeeper.collector.raylet_socket import raylet_listens
from raykeeper.logs import Log

POLL_SECONDS = 1.0
SETTLE_SECONDS = 60.0
"""A session that did not change for this long is looked into only when it changes again."""
LATEST = "session_latest"
MAX_SESSIONS = 100
"""Folders that are taken for sessions: the current one, those known already, then the newest. More are told of once."""

log = Log("raykeeper.collector.sessions")


@dataclass(frozen=True)
class SessionOnDisk:
    """One `session_…` directory and the raylets seen in it, oldest first."""

    name: str
    path: Path
    incarnations: tuple[NodeIncarnation, ...] = ()


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
        self._raylet_ends = RayletEnds(clock)
        self._has_told_of_many = False

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

    def raylet_end(self, node_id: str) -> RayletEnd | None:
        """How and when a raylet ended; None while it lives, or where that was not seen."""
        return self._raylet_ends.end_of(node_id)

    def is_raylet_alive(self, node_id: str) -> bool:
        """Whether the raylet was heard by this collector, and has not ended since."""
        return self._raylet_ends.is_alive(node_id)

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.poll)
            except Exception:
                log.exception("looking for sessions failed", root=str(self._root))
            await asyncio.sleep(POLL_SECONDS)

    def poll(self) -> None:
        """Look once. Costs a few system calls per session, which block: for a thread."""
        try:
            with ray_root(self._root) as root:
                self._look(root)
        except OSError:  # Ray has not started yet, or keeps its folder to itself
            self._forget(set(self._sessions))
            self._current = None
            self._by_name = ()
        self._ask_raylet()

    def _look(self, root: Folder) -> None:
        names = {entry.name for entry in root.list().entries if is_session_folder(entry)}
        self._current = _latest(root, names)
        names = self._taken(root, names)
        self._forget(self._sessions.keys() - names)
        for name in sorted(names - self._sessions.keys()):
            self._sessions[name] = SessionOnDisk(name, self._root / name)
            log.info("session found", session=name)
            self._tell(SessionAppeared(self._sessions[name]))
        for name in names:
            try:
                if self._may_have_news(root, self._sessions[name]):
                    self._look_for_nodes(name)
            except Exception:  # one session's trouble is not the others'
                log.exception("looking into a session failed", session=name)
        self._by_name = tuple(sorted(self._sessions.values(), key=lambda session: session.name))

    def _forget(self, names: set[str]) -> None:
        for name in names:
            self._sessions.pop(name, None)
            self._changes.pop(name, None)

    def _taken(self, root: Folder, names: set[str]) -> set[str]:
        """The folders that are looked into, where there are more than any Ray leaves."""
        if len(names) <= MAX_SESSIONS:
            return names
        if not self._has_told_of_many:
            self._has_told_of_many = True
            log.warning("too many sessions on disk, only some are collected", found=len(names), limit=MAX_SESSIONS)

        def wanted(name: str) -> tuple[bool, bool, int]:
            return name == self._current, name in self._sessions, root.changed_ns(name)

        return set(sorted(names, key=wanted)[-MAX_SESSIONS:])

    def _may_have_news(self, root: Folder, session: SessionOnDisk) -> bool:
        """Whether a node may be found that is not known yet: decided by what a few `stat` calls say."""
        now, mark = self._clock.steady(), _mark(root, session.name)
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
            if node.node_id not in known and len(known) >= MAX_NODES:
                continue
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
        session = self._sessions[self._current]
        listens = raylet_listens(session.path)
        if session.incarnations:
            self._raylet_ends.look(session.path, session.incarnations[-1], listens=listens)
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


def _latest(root: Folder, names: set[str]) -> str | None:
    try:
        # Only the name counts: the link holds a path as Ray's container sees it, ours may be another.
        target = PurePath(root.link_target(LATEST)).name
    except OSError:
        target = ""
    return target if target in names else max(names, key=lambda name: (root.changed_ns(name), name), default=None)


def _mark(root: Folder, session: str) -> tuple[int, ...]:
    """When the places were changed in which a new node shows."""
    try:
        folder = root.folder(session)
    except OSError:
        return ()
    try:
        return folder.mtime_ns, folder.changed_ns(LOGS), folder.changed_ns("ports_by_node.json")
    finally:
        folder.close()
