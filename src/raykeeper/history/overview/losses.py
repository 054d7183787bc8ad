"""Data of a session that is missing or late, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from raykeeper.history.asked import Session
from raykeeper.history.opened import OpenedSession
from raykeeper.history.overview.facts import state_of
from raykeeper.history.overview.model import Loss
from raykeeper.history.overview.words import counted
from raykeeper.history.report.situation import Ending
from raykeeper.history.report.unknowns import unknowns_of
from raykeeper.layout.records import NodeRecord

_CAPTURED = "/api/v0/tasks"
_LATE_SECONDS = 30.0
"""Younger data is on its way: an idle collector sends every half minute."""
_ODD_CLOCK_SECONDS = 1.0  # less does not change the order of what a person compares
_NODES_NAMED = 5


def losses_of(session: Session, attempts: int) -> tuple[Loss, ...]:
    """What is missing for good, as reports name it too, then what is late or may mislead."""
    return tuple(Loss(what, text) for what, text in _losses(session, attempts))


def _losses(session: Session, attempts: int) -> Iterator[tuple[str, str]]:
    if not attempts and any(path.partition("?")[0] == _CAPTURED for path in session.polled):
        words = "this cluster had no collector: its lists were captured once, and are in the Ray dashboard alone"
        yield "no events", words
    if isinstance(session, OpenedSession):
        ending = Ending(session.ended_at, is_crash=state_of(session) == "crashed")
        yield from unknowns_of(session, ending)
        yield from _late(session)
        yield from _clocks(session.nodes)


def _late(session: OpenedSession) -> Iterator[tuple[str, str]]:
    """What nodes have that did not end, and could not send yet."""
    ended = {end.node_id for end in session.ends}
    behind = [
        node.delivery
        for node in session.nodes
        if node.node_id not in ended and node.delivery.oldest_unsent_seconds > _LATE_SECONDS
    ]
    if behind:
        unsent = sum(delivery.unsent_event_bytes + delivery.unsent_log_bytes for delivery in behind)
        oldest = max(delivery.oldest_unsent_seconds for delivery in behind)
        what = f"{counted(unsent, 'byte')} of {counted(len(behind), 'node')}"
        yield "late", f"{what} are not in the store yet, some for {oldest:.0f} s"
    refused = sum(node.delivery.batches_refused for node in session.nodes)
    if refused:
        yield (
            "late",
            f"{refused:,} batches were refused for want of disk; Ray sends those again until it drops them",
        )


def _clocks(nodes: tuple[NodeRecord, ...]) -> Iterator[tuple[str, str]]:
    odd = [
        (node.hostname or node.node_id, node.clock_offset_seconds)
        for node in nodes
        if node.clock_offset_seconds is not None and abs(node.clock_offset_seconds) > _ODD_CLOCK_SECONDS
    ]
    for name, seconds in odd[:_NODES_NAMED]:
        yield (
            "odd clock",
            f"the clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the store's",
        )
    if len(odd) > _NODES_NAMED:
        yield "odd clock", f"{len(odd) - _NODES_NAMED} more nodes have a clock that differs"
