"""The next step of an incremental upgrade: how much of Serve each cluster runs, and how much traffic it gets. Pure.

Capacity goes ahead of traffic. The cluster that is to take more first gets more of Serve. Once that runs, traffic
moves. Once the gateway sends it there, the other cluster gives up as much. A rollback is the same the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

WHOLE: Final = 100


class Direction(Enum):
    """Which cluster is to have the traffic in the end."""

    FORWARD = auto()
    """The new one."""
    BACK = auto()
    """The old one, which is a rollback."""


@dataclass(frozen=True)
class Shares:
    """In percent, what each of the two clusters has. The old one gets the traffic that the new one does not get."""

    active_capacity: int = WHOLE
    """`target_capacity` of Serve on the old cluster."""
    pending_capacity: int = 0
    traffic: int = 0
    """Traffic to the new cluster."""
    moved_at: datetime | None = None
    """When traffic last moved; None: it never did."""


UNDIVIDED: Final = Shares()
"""The old cluster has it all."""


@dataclass(frozen=True)
class Pace:
    """How fast the user wants it."""

    step: int
    """Percent of the traffic that move at once."""
    interval: timedelta
    """Between two of these moves."""
    surge: int
    """Percent of Serve that may run in addition."""
    pause_at: int | None = None
    """With so much traffic the new cluster waits until somebody approves; None: nobody is asked, or approved."""


@dataclass(frozen=True)
class View:
    """What must be known before a step, about the cluster that is to get more and the one that is to get less."""

    capacity_waits: str = ""
    """Why a cluster does not have its capacity yet; empty: both have it."""
    traffic_waits: str = ""
    """Why the gateway does not send traffic as it should; empty: it does."""
    taker_waits: str = ""
    """Why the cluster that is to get more cannot take more; empty: it can."""
    is_giver_dead: bool = False
    """No pod of the cluster that is to get less takes requests."""
    verdict_waits: str = ""
    """Why it cannot be said yet whether the last step went well; empty: it did, or nobody asks."""


@dataclass(frozen=True)
class Step:
    """Where to go from here."""

    shares: Shares
    told: str
    """What is done, or waited for."""
    look_at: datetime | None = None
    """When to look again although nothing happens."""
    is_paused: bool = False
    """Somebody has to approve it."""


def is_over(shares: Shares, direction: Direction) -> bool:
    """Whether nothing is left to move. The gateway may still have to be told."""
    if direction is Direction.BACK:
        return shares.traffic == 0 and shares.active_capacity == WHOLE
    return shares.traffic == WHOLE and shares.pending_capacity == WHOLE and shares.active_capacity == 0


def next_step(shares: Shares, direction: Direction, pace: Pace, view: View, now: datetime) -> Step:
    """One move, or none while something is waited for. Repeated, it ends: each move brings the end nearer."""
    side = _Side.of(shares, direction)
    if view.is_giver_dead and direction is Direction.BACK and side.traffic < WHOLE:
        # Requests that go there fail. A cluster that is short of capacity answers late, which is better.
        return Step(
            _Side(WHOLE, WHOLE, 0).shares(direction, now), "the new cluster answers nobody: all traffic goes back"
        )
    if _is_paused(side, direction, pace):
        return Step(shares, f"it is held at {side.traffic} % of the traffic", is_paused=True)
    if view.verdict_waits:
        return Step(shares, view.verdict_waits)
    if side.traffic < side.capacity:
        return _move_traffic(shares, side, direction, pace, view, now)
    if waits := view.capacity_waits:
        return Step(shares, waits)
    if side.capacity + side.other_capacity > WHOLE:
        return _give_up_capacity(shares, side, direction, pace, view)
    if side.capacity < WHOLE:
        capacity = min(side.capacity + pace.surge, WHOLE)
        return Step(
            replace(side, capacity=capacity).shares(direction, shares.moved_at), f"capacity goes to {capacity} %"
        )
    return Step(shares, view.traffic_waits)


@dataclass(frozen=True)
class _Side:
    """The shares, seen from the cluster that is to have all in the end."""

    capacity: int
    traffic: int
    other_capacity: int

    @classmethod
    def of(cls, shares: Shares, direction: Direction) -> _Side:
        if direction is Direction.FORWARD:
            return cls(shares.pending_capacity, shares.traffic, shares.active_capacity)
        return cls(shares.active_capacity, WHOLE - shares.traffic, shares.pending_capacity)

    def shares(self, direction: Direction, moved_at: datetime | None) -> Shares:
        if direction is Direction.FORWARD:
            return Shares(self.other_capacity, self.capacity, self.traffic, moved_at)
        return Shares(self.capacity, self.other_capacity, WHOLE - self.traffic, moved_at)


def _is_paused(side: _Side, direction: Direction, pace: Pace) -> bool:
    is_asked = direction is Direction.FORWARD and pace.pause_at is not None
    return is_asked and side.capacity > 0 and side.traffic >= (pace.pause_at or 0)


def _move_traffic(shares: Shares, side: _Side, direction: Direction, pace: Pace, view: View, now: datetime) -> Step:
    if waits := view.capacity_waits or view.taker_waits or view.traffic_waits:
        return Step(shares, waits)
    due = shares.moved_at + pace.interval if shares.moved_at is not None else now
    if now < due:
        return Step(shares, f"the next step is due {pace.interval.total_seconds():g} s after the last one", due)
    ceiling = side.capacity
    if direction is Direction.FORWARD and pace.pause_at is not None:
        ceiling = min(ceiling, pace.pause_at)
    traffic = min(side.traffic + pace.step, ceiling)
    return Step(replace(side, traffic=traffic).shares(direction, now), f"traffic goes to {traffic} %")


def _give_up_capacity(shares: Shares, side: _Side, direction: Direction, pace: Pace, view: View) -> Step:
    """The other cluster keeps what it needs for the traffic that it has."""
    if view.traffic_waits:
        return Step(shares, view.traffic_waits)
    other = max(side.other_capacity - pace.surge, WHOLE - side.traffic)
    left = replace(side, other_capacity=other)
    return Step(left.shares(direction, shares.moved_at), f"capacity of the other cluster goes to {other} %")
