"""Actors and nodes on a time line. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from raykeeper.history.asked import Row
from raykeeper.history.endpoints.logicalactors import exit_detail
from raykeeper.history.endpoints.nodes import state_message
from raykeeper.history.endpoints.rayjson import optional_json
from raykeeper.history.overview.bins import to_time
from raykeeper.history.overview.model import Lane, Mark, Span
from raykeeper.history.overview.words import counted
from raykeeper.history.secretpatterns import masked_text

LANES = 15
"""Of each kind."""
_SPANS_OF_LANE = 20  # incarnations of one actor
_TITLE_CHARS = 200


def actor_lanes(rows: Iterable[Row], until_ns: int) -> tuple[Lane, ...]:
    return tuple(_actor(row, until_ns) for row in rows)


def node_lanes(rows: Sequence[Row], attempts: dict[str, Row], until_ns: int) -> tuple[Lane, ...]:
    """The nodes that ran something of a job."""
    used = [row for row in rows if row["node_id"] in attempts]
    return tuple(_node(row, attempts[row["node_id"]], until_ns) for row in used[:LANES])


def _actor(row: Row, until_ns: int) -> Lane:
    """Alive from each ALIVE to whatever came next."""
    end_ns = row["end_ns"] or until_ns
    steps = [*(row["transitions"] or ()), {"ns": end_ns, "state": "end"}]
    spans = [
        Span(to_time(first["ns"]), to_time(max(first["ns"], then["ns"])), "alive", f"alive, pid {first['pid'] or 0}")
        for first, then in pairwise(steps)
        if first["state"] == "ALIVE"
    ]
    label = row["repr_name"] or row["name"] or row["class_name"] or row["actor_id"]
    restarts = row["num_restarts"] or 0
    times = "once" if restarts == 1 else f"{restarts} times"
    note = f"{(row['state'] or 'unknown').lower()}{f', restarted {times}' if restarts else ''}"
    return Lane("actors", label, note, spans=tuple(spans[:_SPANS_OF_LANE]), marks=tuple(_actor_marks(row)))


def _actor_marks(row: Row) -> Iterable[Mark]:
    for step in (row["transitions"] or ())[:_SPANS_OF_LANE]:
        if step["state"] == "RESTARTING":
            yield Mark(to_time(step["ns"]), "warning", f"restarting {step['restart_reason'] or ''}".strip())
        elif step["state"] == "DEAD":
            cause = optional_json(step["death_cause"]) or {}
            kind = "failed" if died_unasked(cause) else "normal"
            yield Mark(to_time(step["ns"]), kind, masked_text(f"dead: {exit_detail(cause)}")[:_TITLE_CHARS])


def died_unasked(cause: Mapping[str, Any]) -> bool:
    """Whether a death was a failure: the actor could not be made, or its worker or node died unasked."""
    context = cause.get("actorDiedErrorContext")
    if not isinstance(context, Mapping):
        return bool(cause)
    is_asked = "INTENDED_" in str(context.get("errorMessage"))
    return context.get("reason") in ("WORKER_DIED", "NODE_DIED") and not is_asked


def _node(row: Row, ran: Row, until_ns: int) -> Lane:
    death = state_message(row["death_reason"], row["death_message"])
    is_lost = row["death_reason"] == "UNEXPECTED_TERMINATION"
    label = row["hostname"] or row["node_name"] or row["node_id"]
    failed = f", {ran['failed']:,} failed" if ran["failed"] else ""
    note = f"{counted(ran['attempts'], 'attempt')}{failed}"
    spans: tuple[Span, ...] = ()
    if row["started_ns"] is not None:
        end_ns = max(row["started_ns"], row["end_ns"] or until_ns)
        kind = "lost" if is_lost else "alive"
        spans = (Span(to_time(row["started_ns"]), to_time(end_ns), kind, f"node {row['node_id']}"),)
    marks = (Mark(to_time(row["end_ns"]), "failed" if is_lost else "normal", death),) if death and row["end_ns"] else ()
    return Lane("nodes", f"{label}{' (head)' if row['is_head_node'] else ''}", note, spans=spans, marks=marks)
