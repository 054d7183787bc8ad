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


def judge(head: Beat | None, others: Sequence[Beat], *, closed_at: datetime | None, now: datetime) -> Verdict:
    """The state of a session by the newest head incarnation, all other nodes, and what the observer wrote.

    A head that beats after the observer closed its cluster is another one, under GCS fault tolerance.
    """
    state = _state(head, closed_at, now)
    nodes = [*others, head] if head else others
    is_final = state is not State.RUNNING and all(node.is_over(now) for node in nodes)
    return Verdict(state, is_final)


def _state(head: Beat | None, closed_at: datetime | None, now: datetime) -> State:
    if head is None:
        return State.ENDED if closed_at else State.CRASHED
    if head.has_ended or (closed_at is not None and closed_at >= head.at):
        return State.ENDED
    return State.RUNNING if head.is_fresh(now) else State.CRASHED
