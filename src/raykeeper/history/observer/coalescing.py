"""What is given up when too many facts wait: first what later facts say better, then the oldest. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykeeper.layout.kube_facts import ClusterFact, EventFact, PodFact

SeenFact = PodFact | EventFact | ClusterFact
"""What the observer sees; losses it only counts."""


@dataclass(frozen=True)
class Losses:
    """How many facts were given up."""

    pods: int = 0
    events: int = 0

    def __add__(self, other: Losses) -> Losses:
        return Losses(self.pods + other.pods, self.events + other.events)

    def __bool__(self) -> bool:
        return bool(self.pods or self.events)


NO_LOSSES = Losses()


def coalesce(facts: Sequence[SeenFact], most: int) -> tuple[list[SeenFact], Losses]:
    """At most `most` facts. The last state of each pod and the last count of each Event are kept longest."""
    last = {_subject(fact): place for place, fact in enumerate(facts)}
    kept = [fact for place, fact in enumerate(facts) if last[_subject(fact)] == place]
    lost = [fact for place, fact in enumerate(facts) if last[_subject(fact)] != place]
    # An Event's last count says all that the earlier ones did.
    given_up = [fact for fact in lost if not isinstance(fact, EventFact)] + kept[: max(0, len(kept) - most)]
    return kept[max(0, len(kept) - most) :], _count(given_up)


def _subject(fact: SeenFact) -> tuple[type, str]:
    return type(fact), fact.uid


def _count(facts: Sequence[SeenFact]) -> Losses:
    return Losses(
        pods=sum(isinstance(fact, PodFact) for fact in facts), events=sum(isinstance(fact, EventFact) for fact in facts)
    )
