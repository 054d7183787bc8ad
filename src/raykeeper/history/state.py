"""Whether a session runs, ended or crashed, and whether more may come. Pure; all times are by the store's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

MISSED_BEATS = 3
"""A node is silent once its heartbeat is older than this many intervals."""
FINAL_AFTER = timedelta(minutes=5)
"""A silent node's collector may still be retrying its last uploads; after this nobody waits for it."""
DEFAULT_INTERVAL_SECONDS = 30.0


class State(StrEnum):
    RUNNING = "running"
    ENDED = "ended"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Verdict:
    state: State
    is_final: bool
    """Nothing more is expected; a later object reopens the session all the same."""


@dataclass(frozen=True)
class Beat:
    """The last sign of life of one node incarnation."""

    at: datetime
    has_ended: bool = False
    """It said goodbye."""
    interval_seconds: float = DEFAULT_INTERVAL_SECONDS

    def is_fresh(self, now: datetime) -> bool:
        return now - self.at < timedelta(seconds=MISSED_BEATS * self.interval_seconds)

    def is_over(self, now: datetime) -> bool:
        return self.has_ended or now - self.at >= FINAL_AFTER


@dataclass(frozen=True)
class Closing:
    """What the observer of Kubernetes wrote about a session's end."""

    at: datetime
    is_crash: bool = False
    """Its head was lost, which nobody had asked for."""


def judge(head: Beat | None, others: Sequence[Beat], *, closing: Closing | None, now: datetime) -> Verdict:
    """The state of a session by the newest head incarnation, all other nodes, and what the observer wrote.

    A head that beats after the observer closed its cluster is another one, under GCS fault tolerance.
    """
    state = _state(head, closing, now)
    nodes = [*others, head] if head else others
    is_final = state is not State.RUNNING and all(node.is_over(now) for node in nodes)
    return Verdict(state, is_final)


def _state(head: Beat | None, closing: Closing | None, now: datetime) -> State:
    if head is not None and head.has_ended:
        return State.ENDED
    if closing is not None and (head is None or closing.at >= head.at):
        return State.CRASHED if closing.is_crash else State.ENDED
    return State.RUNNING if head is not None and head.is_fresh(now) else State.CRASHED
