"""What Kubernetes said, on a time line: Events and how containers ended, one lane for each object. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from raykeeper.history.kubefacts.merged import KubeFacts
from raykeeper.history.overview.model import Lane, Mark
from raykeeper.history.overview.words import counted
from raykeeper.history.secretpatterns import masked_text
from raykeeper.layout.kube_facts import ContainerFact, EventFact, PodFact

LANES = 12
_MARKS_OF_LANE = 16
_TITLE_CHARS = 240
NOT_RECORDED = "Nobody recorded what Kubernetes said about this cluster."


def why_empty(facts: KubeFacts) -> str:
    """Why there is nothing of Kubernetes; empty where there is."""
    return NOT_RECORDED if facts.is_empty else ""


def kube_lanes(facts: KubeFacts, begin: datetime, end: datetime) -> tuple[tuple[Lane, ...], int]:
    """Lanes of what happened within a time, those with warnings first; and how many more there are."""
    by_object: defaultdict[str, set[Mark]] = defaultdict(set)
    for event in facts.events:
        by_object[f"{event.about_kind} {event.about_name}".strip()].add(_event_mark(event))
    for pod in facts.pods:
        by_object[f"Pod {pod.name}"].update(_pod_marks(pod))
    lanes = [_lane(name, (mark for mark in marks if begin <= mark.at <= end)) for name, marks in by_object.items()]
    shown = sorted((lane for lane in lanes if lane.marks), key=_order)
    return tuple(shown[:LANES]), max(0, len(shown) - LANES)


def _lane(name: str, marks: Iterable[Mark]) -> Lane:
    """Warnings stay where there is too much for a lane."""
    found = sorted(marks, key=lambda mark: (mark.kind != "warning", mark.at, mark.title))
    warnings = sum(mark.kind == "warning" for mark in found)
    note = f"{counted(len(found), 'event')}{f', {warnings} of them warnings' if warnings else ''}"
    return Lane(
        "kubernetes", name, note, marks=tuple(sorted(found[:_MARKS_OF_LANE], key=lambda mark: (mark.at, mark.title)))
    )


def _order(lane: Lane) -> tuple[bool, datetime, str]:
    return all(mark.kind != "warning" for mark in lane.marks), lane.marks[0].at, lane.label


def _event_mark(event: EventFact) -> Mark:
    times = f" ({event.count} times)" if event.count > 1 else ""
    title = masked_text(f"{event.reason}{times}: {event.message}")
    return Mark(event.at, "warning" if event.type == "Warning" else "normal", title[:_TITLE_CHARS])


def _pod_marks(pod: PodFact) -> Iterable[Mark]:
    for container in pod.containers:
        yield from _ends_of(container, pod.at)
    if pod.reason:
        yield Mark(pod.at, "warning", masked_text(f"{pod.reason}: {pod.message}")[:_TITLE_CHARS])
    if pod.deleted:
        yield Mark(pod.at, "normal", "the pod is gone")
    if pod.disruption:
        yield Mark(pod.at, "warning", f"{pod.disruption}: {pod.disruption_message}"[:_TITLE_CHARS])


def _ends_of(container: ContainerFact, seen_at: datetime) -> Iterable[Mark]:
    """This end and the one before: a container that was started again shows the former as its last state."""
    if container.state == "terminated":
        yield _end(container.name, container.reason, container.exit_code, container.finished_at or seen_at)
    if container.last_finished_at is not None:
        yield _end(container.name, container.last_reason, container.last_exit_code, container.last_finished_at)


def _end(name: str, reason: str, exit_code: int | None, at: datetime) -> Mark:
    code = "" if exit_code is None else f" with code {exit_code}"
    return Mark(at, "normal" if exit_code == 0 else "warning", f"{name} ended{code}: {reason or 'no reason'}")
