"""Facts of many segments as one account: in order, each once, with what is missing in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from raykeeper.layout.kube_facts import ClusterFact, DecodedFacts, EventFact, KubeFact, LossFact, PodFact, says_the_same

_F = TypeVar("_F", PodFact, EventFact, ClusterFact, LossFact)


@dataclass(frozen=True)
class KubeFacts:
    """What is known of one cluster (one uid) from Kubernetes."""

    pods: tuple[PodFact, ...] = ()
    """Every state of every pod that differs from the one before, by time."""
    events: tuple[EventFact, ...] = ()
    """Each Event once, as it was last seen, by the time it last happened."""
    cluster: ClusterFact | None = None
    """The RayCluster as it was last seen."""
    lost_pods: int = 0
    """States of pods that the observer saw and could not keep."""
    lost_events: int = 0
    """Events that the observer saw and could not keep."""
    unread_segments: int = 0
    """Older ones that were left out because newer ones reached the limit."""
    unreadable: int = 0
    """Damaged lines and segments."""

    @property
    def is_empty(self) -> bool:
        return not (self.pods or self.events or self.cluster)

    @property
    def is_complete(self) -> bool:
        """Whether everything the observer saw is here."""
        return not (self.lost_pods or self.lost_events or self.unread_segments or self.unreadable)


def merge_facts(segments: Iterable[DecodedFacts], *, unread_segments: int = 0) -> KubeFacts:
    """One account of all segments, in whatever order they come; repeats, as after a restart, change nothing."""
    decoded = list(segments)
    facts = [fact for segment in decoded for fact in segment.facts]
    losses = set(_of(facts, LossFact))
    return KubeFacts(
        pods=_changes(_of(facts, PodFact)),
        events=_newest_events(_of(facts, EventFact)),
        cluster=max(_of(facts, ClusterFact), key=_when, default=None),
        lost_pods=sum(loss.pods for loss in losses),
        lost_events=sum(loss.events for loss in losses),
        unread_segments=unread_segments,
        unreadable=sum(segment.unreadable for segment in decoded),
    )


def newest_pods(pods: Iterable[PodFact]) -> tuple[PodFact, ...]:
    """Each pod as it was last seen, in the order in which they were first."""
    newest: dict[str, PodFact] = {}
    for pod in sorted(pods, key=_when):
        newest[pod.uid] = pod
    return tuple(newest.values())


def _of(facts: Iterable[KubeFact], kind: type[_F]) -> list[_F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def _changes(pods: Iterable[PodFact]) -> tuple[PodFact, ...]:
    last: dict[str, PodFact] = {}
    changes = []
    for pod in sorted(pods, key=_when):
        if not says_the_same(last.get(pod.uid), pod):
            changes.append(pod)
            last[pod.uid] = pod
    return tuple(changes)


def _newest_events(events: Iterable[EventFact]) -> tuple[EventFact, ...]:
    newest: dict[str, EventFact] = {}
    for event in events:
        known = newest.get(event.uid)
        if known is None or (event.count, event.at) > (known.count, known.at):
            newest[event.uid] = event
    return tuple(sorted(newest.values(), key=lambda event: (event.at, event.uid)))


def _when(fact: PodFact | ClusterFact) -> tuple[datetime, bool, str]:
    """By time; an end comes after what was seen at the same moment."""
    return fact.at, fact.deleted, fact.uid
