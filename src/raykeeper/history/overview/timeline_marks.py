"""Lines through all lanes of a timeline: what Kubernetes did to the cluster, and nodes that died. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from raykeeper.history.entities.nodes import state_message
from raykeeper.history.overview.lanes import POD_GONE, event_mark, pod_marks
from raykeeper.history.overview.model import Mark
from raykeeper.history.query.context import Row
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.masking import masked_text
from raykeeper.times import from_ns

MARKS_LIMIT = 120
"""Lines in a range: more would be a wall."""
_LASTING = frozenset(
    {
        "DeletingNode",
        "Evicted",
        "Killing",
        "NodeNotReady",
        "NodeNotSchedulable",
        "Preempted",
        "Pulled",
        "Pulling",
        "RemovingNode",
        "TaintManagerEviction",
    }
)
"""Reasons of Events that matter to tasks although Kubernetes does not warn of them."""


@dataclass(frozen=True)
class LineMark:
    """Something that happened to the cluster at a moment."""

    at: datetime
    kind: Literal["failed", "warning", "normal"]
    title: str
    about: str
    """The pod, node or other object."""


def line_marks(facts: KubeFacts, nodes: Iterable[Row], begin: datetime, end: datetime) -> tuple[list[LineMark], int]:
    """Those within a range, in their order, and how many of the least important were left out."""
    found = {mark for mark in (*_kube(facts), *_nodes(nodes)) if begin <= mark.at < end}
    chosen = sorted(found, key=lambda mark: (mark.kind == "normal", mark.at, mark.title))[:MARKS_LIMIT]
    return sorted(chosen, key=lambda mark: (mark.at, mark.title, mark.about)), len(found) - len(chosen)


def _kube(facts: KubeFacts) -> Iterator[LineMark]:
    for event in facts.events:
        if event.type == "Warning" or event.reason in _LASTING:
            yield _line(event_mark(event), f"{event.about_kind} {event.about_name}".strip())
    for pod in facts.pods:
        for mark in pod_marks(pod):
            if mark.kind != "normal" or mark.title == POD_GONE:
                yield _line(mark, f"Pod {pod.name}")


def _nodes(rows: Iterable[Row]) -> Iterator[LineMark]:
    for row in rows:
        death = state_message(row["death_reason"], row["death_message"])
        if death and row["end_ns"]:
            is_lost = row["death_reason"] == "UNEXPECTED_TERMINATION"
            label = row["hostname"] or row["node_name"] or row["node_id"]
            title = masked_text(f"node died: {death}")
            yield LineMark(from_ns(row["end_ns"]), "failed" if is_lost else "normal", title, f"Ray node {label}")


def _line(mark: Mark, about: str) -> LineMark:
    return LineMark(mark.at, "warning" if mark.kind == "warning" else "normal", mark.title, about)
