"""The lanes of a job's timeline: tasks by function, actors, nodes, and what Kubernetes said."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from raykeeper.history.entities.actors import exit_detail
from raykeeper.history.entities.nodes import state_message
from raykeeper.history.entities.ray_json import json_object
from raykeeper.history.overview.model import FunctionRow, Functions, Lane, Mark, Span
from raykeeper.history.overview.sql import FEW_ATTEMPTS, FUNCTION_EDGES
from raykeeper.history.overview.task_counts import Bins, Edges, edges_of, mean_levels
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.history.text import counted
from raykeeper.layout.kube_facts import ContainerFact, EventFact, PodFact
from raykeeper.masking import masked_text
from raykeeper.times import NS, from_ns

NODE_LANES = 15
"""Of each kind."""
_SPANS_OF_LANE = 20  # incarnations of one actor
_DEATH_CHARS = 200


def actor_lanes(rows: Iterable[Row], until_ns: int) -> tuple[Lane, ...]:
    return tuple(_actor(row, until_ns) for row in rows)


def node_lanes(rows: Sequence[Row], attempts: dict[str, Row], until_ns: int) -> tuple[Lane, ...]:
    """The nodes that ran something of a job."""
    used = [row for row in rows if row["node_id"] in attempts]
    return tuple(_node(row, attempts[row["node_id"]], until_ns) for row in used[:NODE_LANES])


def _actor(row: Row, until_ns: int) -> Lane:
    """Alive from each ALIVE to whatever came next."""
    end_ns = row["end_ns"] or until_ns
    steps = [*(row["transitions"] or ()), {"ns": end_ns, "state": "end"}]
    spans = [
        Span(from_ns(first["ns"]), from_ns(max(first["ns"], then["ns"])), "alive", f"alive, pid {first['pid'] or 0}")
        for first, then in pairwise(steps)
        if first["state"] == "ALIVE"
    ]
    label = row["repr_name"] or row["name"] or row["class_name"] or row["actor_id"]
    restarts = row["num_restarts"] or 0
    times = "once" if restarts == 1 else f"{restarts} times"
    note = f"{(row['state'] or 'unknown').lower()}{f', restarted {times}' if restarts else ''}"
    return Lane("actors", label, note, spans=tuple(spans[:_SPANS_OF_LANE]), marks=tuple(_actor_marks(row)))


def _actor_marks(row: Row) -> Iterable[Mark]:
    """Every death once: when its job ends, Ray tells of a dead actor again."""
    before = ""
    for step in (row["transitions"] or ())[:_SPANS_OF_LANE]:
        is_told, before = step["state"] == before, step["state"]
        if step["state"] == "RESTARTING":
            yield Mark(from_ns(step["ns"]), "warning", f"restarting {step['restart_reason'] or ''}".strip())
        elif step["state"] == "DEAD" and not is_told:
            cause = json_object(step["death_cause"])
            kind = "failed" if died_unasked(cause) else "normal"
            yield Mark(from_ns(step["ns"]), kind, masked_text(f"dead: {exit_detail(cause)}")[:_DEATH_CHARS])


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
        spans = (Span(from_ns(row["started_ns"]), from_ns(end_ns), kind, f"node {row['node_id']}"),)
    marks = (Mark(from_ns(row["end_ns"]), "failed" if is_lost else "normal", death),) if death and row["end_ns"] else ()
    return Lane("nodes", f"{label}{' (head)' if row['is_head_node'] else ''}", note, spans=spans, marks=marks)


KUBE_LANES = 12
_KUBE_MARKS_OF_LANE = 16
_KUBE_TITLE_CHARS = 240
POD_GONE = "the pod is gone"
NOT_RECORDED = "No Kubernetes events were recorded for this cluster."


def why_empty(facts: KubeFacts) -> str:
    """Why there is nothing of Kubernetes; empty where there is."""
    return NOT_RECORDED if facts.is_empty else ""


def kube_lanes(facts: KubeFacts, begin: datetime, end: datetime) -> tuple[tuple[Lane, ...], int]:
    """Lanes of what happened within a time, those with warnings first; and how many more there are."""
    by_object: defaultdict[str, set[Mark]] = defaultdict(set)
    for event in facts.events:
        by_object[f"{event.about_kind} {event.about_name}".strip()].add(event_mark(event))
    for pod in facts.pods:
        by_object[f"Pod {pod.name}"].update(pod_marks(pod))
    lanes = [_lane(name, (mark for mark in marks if begin <= mark.at <= end)) for name, marks in by_object.items()]
    shown = sorted((lane for lane in lanes if lane.marks), key=_order)
    return tuple(shown[:KUBE_LANES]), max(0, len(shown) - KUBE_LANES)


def _lane(name: str, marks: Iterable[Mark]) -> Lane:
    """Warnings stay where there is too much for a lane."""
    found = sorted(marks, key=lambda mark: (mark.kind != "warning", mark.at, mark.title))
    warnings = sum(mark.kind == "warning" for mark in found)
    note = f"{counted(len(found), 'event')}{f', {warnings} of them warnings' if warnings else ''}"
    return Lane(
        "kubernetes",
        name,
        note,
        marks=tuple(sorted(found[:_KUBE_MARKS_OF_LANE], key=lambda mark: (mark.at, mark.title))),
    )


def _order(lane: Lane) -> tuple[bool, datetime, str]:
    return all(mark.kind != "warning" for mark in lane.marks), lane.marks[0].at, lane.label


def event_mark(event: EventFact) -> Mark:
    times = f" ({event.count} times)" if event.count > 1 else ""
    title = masked_text(f"{event.reason}{times}: {event.message}")
    return Mark(event.at, "warning" if event.type == "Warning" else "normal", title[:_KUBE_TITLE_CHARS])


def pod_marks(pod: PodFact) -> Iterable[Mark]:
    for container in pod.containers:
        yield from _ends_of(container, pod.at)
    if pod.reason:
        yield Mark(pod.at, "warning", masked_text(f"{pod.reason}: {pod.message}")[:_KUBE_TITLE_CHARS])
    if pod.deleted:
        yield Mark(pod.at, "normal", POD_GONE)
    if pod.disruption:
        yield Mark(pod.at, "warning", f"{pod.disruption}: {pod.disruption_message}"[:_KUBE_TITLE_CHARS])


def _ends_of(container: ContainerFact, seen_at: datetime) -> Iterable[Mark]:
    """This end and the one before: a container that was started again shows the former as its last state."""
    if container.state == "terminated":
        yield _end(container.name, container.reason, container.exit_code, container.finished_at or seen_at)
    if container.last_finished_at is not None:
        yield _end(container.name, container.last_reason, container.last_exit_code, container.last_finished_at)


def _end(name: str, reason: str, exit_code: int | None, at: datetime) -> Mark:
    code = "" if exit_code is None else f" with code {exit_code}"
    return Mark(at, "normal" if exit_code == 0 else "warning", f"{name} ended{code}: {reason or 'no reason'}")


FEW = 150
"""Attempts that are shown one by one: more would be a solid bar."""
FUNCTION_LANES = 12
_MARKS_OF_LANE = 24  # with twelve lanes the whole timeline stays below a few hundred marks


async def task_lanes(
    context: SessionContext, job_id: str, bins: Bins, functions: Functions, attempts: int
) -> tuple[Lane, ...]:
    """A lane for each of the functions that failed most or took most time."""
    shown = _chosen_functions(functions.rows)
    if attempts <= FEW:
        return _single_lanes(await context.rows(FEW_ATTEMPTS, {"job_id": job_id, "row_limit": FEW}), shown, bins)
    names = [row.name for row in shown]
    rows = await context.rows(FUNCTION_EDGES, {"job_id": job_id, "functions": names, **bins.params})
    return _binned_lanes(rows, shown, bins)


def _chosen_functions(rows: Sequence[FunctionRow]) -> list[FunctionRow]:
    """As many as there are lanes, in their order: those that failed have up to half of them, however short they ran."""
    failed = sorted((row for row in rows if row.failed), key=lambda row: -row.failed)[: FUNCTION_LANES // 2]
    names = {row.name for row in failed}
    others = [row for row in rows if row.name not in names][: FUNCTION_LANES - len(failed)]
    names |= {row.name for row in others}
    return [row for row in rows if row.name in names]


def _single_lanes(rows: Iterable[Row], shown: Sequence[FunctionRow], bins: Bins) -> tuple[Lane, ...]:
    """Every attempt as a span of its own; one that never began is a mark where it failed."""
    by_function: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_function[row["function"] or ""].append(row)
    return tuple(
        Lane(
            "tasks",
            function.name,
            _note(function),
            spans=tuple(_span(row, bins) for row in by_function[function.name] if row["start_ns"] is not None),
            marks=tuple(_failed_unstarted(by_function[function.name]))[:_MARKS_OF_LANE],
        )
        for function in shown
    )


def _binned_lanes(rows: Iterable[Row], shown: Sequence[FunctionRow], bins: Bins) -> tuple[Lane, ...]:
    """How many attempts ran in each part of the time; parts in which some failed are marked."""
    by_function: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_function[row["function"] or ""].append(row)
    return tuple(_binned(function, edges_of(by_function[function.name]), bins) for function in shown)


def _binned(function: FunctionRow, edges: Mapping[str, Edges], bins: Bins) -> Lane:
    none = Edges()
    levels = mean_levels(bins, edges.get("started", none), edges.get("stopped", none))
    failures = edges.get("failed", none).numbers
    return Lane(
        "tasks",
        function.name,
        f"{_note(function)}, up to about {math.ceil(max(levels)):,} at a time",  # means of parts of the time
        levels=levels,
        marks=tuple(_failure_marks(failures, bins)),
    )


def _failure_marks(failures: Mapping[int, int], bins: Bins) -> Iterable[Mark]:
    """The parts with most failures, where there are too many to mark all."""
    worst = sorted(failures, key=lambda part: (-failures[part], part))[:_MARKS_OF_LANE]
    for part in sorted(worst):
        middle = bins.begin_ns + part * bins.width_ns + bins.width_ns // 2
        yield Mark(from_ns(middle), "failed", f"{failures[part]} failed within {bins.width_ns / NS:.3g} s")


def _failed_unstarted(rows: Iterable[Row]) -> Iterable[Mark]:
    for row in rows:
        if row["start_ns"] is None and row["end_ns"] is not None and row["state"] == "FAILED":
            # A worker that dies takes along what it had not yet told: what it was given may have begun.
            when = "failed before it began" if row["worker_id"] is None else "failed, its start is not recorded"
            yield Mark(from_ns(row["end_ns"]), "failed", f"{when}: {row['error_type'] or 'no reason'}")


def _span(row: Row, bins: Bins) -> Span:
    has_failed = row["state"] == "FAILED"
    how = f"{row['state'].lower()} {row['error_type'] or ''}".strip()
    end_ns = row["end_ns"] or bins.end_ns
    seconds = max(0, end_ns - row["start_ns"]) / NS
    title = f"{row['task_id']} attempt {row['attempt_number']}: {how} after {seconds:.3g} s"
    return Span(from_ns(row["start_ns"]), from_ns(end_ns), "failed" if has_failed else "running", title)


def _note(function: FunctionRow) -> str:
    failed = f", {function.failed:,} failed" if function.failed else ""
    return f"{counted(function.attempts, 'attempt')}{failed}"
