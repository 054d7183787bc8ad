"""Whether a session runs, ended or crashed, since when, and whether more may come: the rule of docs/storage-layout.md.

Pure. Ages of heartbeats are by the store's clock; times of ends are those that the nodes wrote down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from raykeeper.layout.records import (
    CRASH_REASONS,
    RAYLET_KILLED,
    CatalogEnd,
    ClosedRecord,
    EndRecord,
    NodeRecord,
)

DOUBTED_BEATS = 2
"""A head whose heartbeat is older than this many intervals is doubted."""
SILENT_BEATS = 3
SILENT_AFTER = timedelta(seconds=90)
"""A node is silent after three intervals, and never sooner than this: a store may be away for a minute."""
FINAL_AFTER = timedelta(minutes=5)
"""A silent node's collector may still be retrying its last uploads; after this nobody waits for it."""
DEFAULT_INTERVAL_SECONDS = 30.0
RAYLET_ENDED = "raylet ended"
SILENT = "silent"
"""Reasons of ends that nobody wrote down in words."""
DOUBTFUL = "running? no heartbeat"
"""What people read in the place of "running" where that is doubted."""


class State(StrEnum):
    RUNNING = "running"
    ENDED = "ended"
    CRASHED = "crashed"
    UNKNOWN = "unknown"
    """No head was ever heard of."""


@dataclass(frozen=True)
class SessionState:
    """What is known of a session's life."""

    state: State = State.UNKNOWN
    is_final: bool = False
    """Nothing more is expected; a later object reopens the session all the same."""
    ended_at: datetime | None = None
    """When the cluster ended; None while it runs."""
    reason: str = ""
    """Why it ended, in the words of whoever wrote that down."""
    is_doubtful: bool = False
    """It counts as running, but its head missed a heartbeat: who says that it runs says this as well."""

    @property
    def words(self) -> str:
        """What people read."""
        return DOUBTFUL if self.is_doubtful else self.state.value

    @property
    def is_over(self) -> bool:
        return self.state in (State.ENDED, State.CRASHED)

    @property
    def is_crash(self) -> bool:
        return self.state is State.CRASHED


@dataclass(frozen=True)
class NodeLife:
    """The signs of life of one node incarnation."""

    beat_at: datetime
    """Of its last heartbeat, by the store's clock."""
    node_id: str = ""
    is_head: bool = False
    interval_seconds: float = DEFAULT_INTERVAL_SECONDS
    raylet_gone_at: datetime | None = None
    was_raylet_killed: bool = False
    has_ended: bool = False
    """It has an `end.json` that no heartbeat took back."""
    end: EndRecord | None = None
    """That record, where it was read."""

    def is_silent(self, now: datetime) -> bool:
        return now - self.beat_at >= max(SILENT_AFTER, timedelta(seconds=SILENT_BEATS * self.interval_seconds))

    def is_doubted(self, now: datetime) -> bool:
        return now - self.beat_at >= timedelta(seconds=DOUBTED_BEATS * self.interval_seconds)

    def is_over(self, now: datetime) -> bool:
        """Nothing more is expected from it."""
        return self.has_ended or now - self.beat_at >= FINAL_AFTER


def is_last_word(written: datetime, beat_at: datetime) -> bool:
    """Whether an end counts, by the store's clock: a collector restarted alone, or another head, beats after it."""
    return written >= beat_at


def node_lives(nodes: Iterable[NodeRecord], ends: Iterable[EndRecord]) -> list[NodeLife]:
    """Of records whose `beat_at` is by the store's clock, and of the ends that count."""
    ended = {end.node_id: end for end in ends}
    return [
        NodeLife(
            beat_at=node.beat_at,
            node_id=node.node_id,
            is_head=node.role == "head",
            interval_seconds=node.interval_seconds,
            raylet_gone_at=node.raylet_gone_at,
            was_raylet_killed=node.was_raylet_killed,
            has_ended=node.node_id in ended,
            end=ended.get(node.node_id),
        )
        for node in nodes
    ]


def session_state(
    nodes: Sequence[NodeLife],
    closed: ClosedRecord | None,
    now: datetime,
    last_events: Mapping[str, datetime] | None = None,
) -> SessionState:
    """The state by the newest head incarnation, and by the observer's record if that one counts.

    A head that fell silent lived until its last heartbeat, or until its last events (`last_events`, by node).
    """
    head = max((node for node in nodes if node.is_head), key=lambda node: node.beat_at, default=None)
    ended = _ended(head, closed, now, last_events or {})
    if ended is None:
        state = State.UNKNOWN if head is None else State.RUNNING
        is_final = head is None and bool(nodes) and all(node.is_over(now) for node in nodes)
        return SessionState(state, is_final, is_doubtful=head is not None and head.is_doubted(now))
    ended_at, reason = ended
    return SessionState(
        _state_of_end(reason), all(node.is_over(now) for node in nodes), ended_at=ended_at, reason=reason
    )


def lost_heads(nodes: Sequence[NodeLife]) -> tuple[datetime, ...]:
    """When earlier heads crashed; with GCS fault tolerance the session went on with the next one each time."""
    heads = sorted((node for node in nodes if node.is_head), key=lambda node: node.beat_at)
    ends = (_ended(head, None, heads[-1].beat_at + FINAL_AFTER, {}) for head in heads[:-1])
    return tuple(end[0] for end in ends if end and _state_of_end(end[1]) is State.CRASHED)


def listed_state(end: CatalogEnd) -> SessionState:
    """Of a session whose newest head wrote its end into the catalog."""
    return SessionState(_state_of_end(end.reason), is_final=True, ended_at=end.ended_at, reason=end.reason)


def _state_of_end(reason: str) -> State:
    return State.CRASHED if reason in CRASH_REASONS or reason == SILENT else State.ENDED


def _ended(
    head: NodeLife | None, closed: ClosedRecord | None, now: datetime, last_events: Mapping[str, datetime]
) -> tuple[datetime, str] | None:
    """When and why the session ended, by who knows best: the head's collector, the observer, the head's silence."""
    if head is not None and head.end is not None:
        return head.end.ended_at, head.end.reason
    if head is not None and head.has_ended:
        return head.beat_at, ""  # its record cannot be read
    if head is not None and head.raylet_gone_at is not None:
        return head.raylet_gone_at, RAYLET_KILLED if head.was_raylet_killed else RAYLET_ENDED
    if closed is not None:
        return closed.closed_at, closed.reason
    if head is not None and head.is_silent(now):
        return max(head.beat_at, last_events.get(head.node_id, head.beat_at)), SILENT
    return None
