"""Under which session and node each event belongs. Pure, but for what `Identities` says.

Session and node come from the event itself; what it does not say comes from the session directory on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from raykeeper.collector.events.splitting import Event, SetAside, SplitBody
from raykeeper.layout.keys import UNKNOWN_SESSION
from raykeeper.layout.names import is_session_name
from raykeeper.rayevents.envelope import Envelope, parse_envelope
from raykeeper.rayevents.ids import NODE_ID_BYTES, to_hex
from raykeeper.rayevents.kinds import EventType

MAX_FOREIGN_SESSIONS = 32
"""In a collector's life. Ray names one; events of a session may come before its folder is seen, or after it is gone."""


class Identities(Protocol):
    """What the session directory tells. Asked from a thread of its own."""

    def node_of(self, session: str) -> str | None:
        """The hex id of the local node in that session; None while it has none."""

    def node_at(self, session: str, moment_ns: int) -> str | None:
        """The same at an earlier moment: a raylet may have been replaced since."""

    def current_session(self) -> str | None:
        """The session that Ray is running now, if any."""


class Place(NamedTuple):
    """Where an event is filed. An empty node is one that is not known."""

    session: str
    node: str


@dataclass
class Filing:
    """Events by place, and what was set aside."""

    events: dict[Place, list[Event]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)
    bad_node_ids: int = 0
    """Events whose own node id could not be read; filed by what the directory says."""

    @property
    def event_count(self) -> int:
        return sum(map(len, self.events.values()))

    @property
    def sessions_without_node(self) -> set[str]:
        return {place.session for place in self.events if not place.node}


class ForeignSessions:
    """The sessions that events name and the disk does not know: some, because each costs an object, and a line of
    every list, for ever. Asked from several threads.
    """

    def __init__(self, limit: int = MAX_FOREIGN_SESSIONS) -> None:
        self._limit = limit
        self._names: set[str] = set()

    def admits(self, name: str) -> bool:
        """Whether events of that session are filed under its name."""
        if name not in self._names and len(self._names) < self._limit:
            self._names.add(name)
        return name in self._names


class Filer:
    """Files the events of one journal. What it found out about a session or node id it remembers."""

    def __init__(self, identities: Identities, foreign: ForeignSessions | None = None) -> None:
        self.filing = Filing()
        self._identities = identities
        self._foreign = foreign or ForeignSessions()
        self._received_ns = 0
        self._places: dict[tuple[str, str], Place | str] = {}
        self._known: dict[tuple[str, str], list[Event]] = {}

    def add(self, split: SplitBody, received_ns: int) -> None:
        """File each event of a body, or set it aside with the reason."""
        self._received_ns = received_ns
        self._places.clear()  # whose an event is that names no node depends on when it came
        known = len(self.filing.set_aside)
        self.filing.set_aside += split.set_aside
        self._file(split.events)
        for number in range(known, len(self.filing.set_aside)):
            self.filing.set_aside[number] = replace(self.filing.set_aside[number], received_ns=received_ns)

    def _file(self, events: Iterable[Event]) -> None:
        known = self._known
        for event in events:
            try:
                envelope = parse_envelope(event)
            except (ValueError, RecursionError):
                self.filing.set_aside.append(SetAside.of("not an object", event))
                continue
            # Nearly every event is of a place that an earlier one was of: this is the path that must be quick.
            group = known.get((envelope.sessionName, envelope.nodeId))
            if group is not None:
                group.append(event)
            else:
                self._file_anew(event, envelope)

    def _file_anew(self, event: Event, envelope: Envelope) -> None:
        place = self._place(envelope)
        if isinstance(place, Place):
            group = self.filing.events.setdefault(place, [])
            group.append(event)
            if envelope.sessionName and envelope.nodeId:
                self._known[envelope.sessionName, envelope.nodeId] = group
        else:
            self.filing.set_aside.append(SetAside.of(place, event))

    def _place(self, envelope: Envelope) -> Place | str:
        """Where it belongs, or why that cannot be said."""
        session, node = envelope.session, envelope.node
        if not session and envelope.type == EventType.PLATFORM:
            session = self._identities.current_session() or ""  # Kubernetes knows of no sessions
        place = self._places.get((session, node))
        if place is None:
            place = self._places[session, node] = self._found(session, node)
        return place

    def _found(self, session: str, node: str) -> Place | str:
        if not session:
            return "no session name"
        if not is_session_name(session):
            return "impossible session name"
        if not self._is_on_disk(session) and not self._foreign.admits(session):
            return "too many sessions that are not on disk"
        own = to_hex(node, NODE_ID_BYTES)
        if own is None and node:
            self.filing.bad_node_ids += 1
        return Place(session, own or self._identities.node_at(session, self._received_ns) or "")

    def _is_on_disk(self, session: str) -> bool:
        return session == self._identities.current_session() or self._identities.node_of(session) is not None


def place_of_rejects(identities: Identities) -> Place:
    """Where what has no place of its own is put: beside the session that runs."""
    session = identities.current_session() or UNKNOWN_SESSION
    return Place(session, identities.node_of(session) or "")
