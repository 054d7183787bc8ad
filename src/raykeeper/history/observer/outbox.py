"""Facts on their way to the store: gathered for a few seconds, bounded in memory and in objects. No I/O, no clock.

What happens at the limits: a cluster that changes all the time gets longer segments, not more of them; when too many
facts wait in all, states of pods that later ones replaced are given up, then the oldest facts, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ClusterFact, EventFact, KubeFact, LossFact, PodFact


class Allowance:
    """Some at once, then so many an hour, as a bucket of tokens."""

    def __init__(self, burst: int, per_hour: int) -> None:
        self._burst = float(burst)
        self._per_second = per_hour / 3600.0
        self._tokens = self._burst
        self._counted_at = float("-inf")

    def seconds_left(self, steady: float) -> float:
        """Time until the next one may be made; zero when it may be now."""
        return max(0.0, (1.0 - self._available(steady)) / self._per_second)

    def spend(self, steady: float) -> None:
        """One is made."""
        self._tokens, self._counted_at = self._available(steady) - 1.0, steady

    def refund(self) -> None:
        """The last one was not made after all."""
        self._tokens += 1.0

    def is_full(self, steady: float) -> bool:
        """Whether it is as good as new."""
        return self._available(steady) >= self._burst

    def _available(self, steady: float) -> float:
        return min(self._burst, self._tokens + (steady - self._counted_at) * self._per_second)


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


@dataclass(frozen=True)
class OutboxLimits:
    """How much may wait, and how often a segment is made."""

    settle_seconds: float = 3.0
    """Facts wait this long for others: a pod that dies changes some five times within seconds."""
    segment_facts: int = 500
    """Of one segment; some 500 KB of text. As many make it due at once."""
    waiting_facts: int = 30_000
    """Of all clusters together; some 30 MB. From half of it on nothing waits for others: the first list of a large
    Kubernetes cluster has that many facts within seconds."""
    burst: int = 20
    """Segments of one cluster in a row. Starting and ending takes about ten."""
    per_hour: int = 60
    """Segments of one cluster after that: a pod that crashes for ever costs one object a minute."""


@dataclass(frozen=True)
class Batch:
    """The facts of one segment."""

    cluster: ClusterId
    facts: tuple[SeenFact, ...]
    since: float
    """When the oldest of them was seen, in steady time."""
    losses: Losses = NO_LOSSES

    def lines(self, now: datetime) -> tuple[KubeFact, ...]:
        """What is written: the facts, and what is missing between them and those before."""
        if not self.losses:
            return self.facts
        return (LossFact(at=now, pods=self.losses.pods, events=self.losses.events), *self.facts)


@dataclass
class _Waiting:
    allowance: Allowance
    facts: list[SeenFact] = field(default_factory=list)
    since: float = 0.0
    losses: Losses = NO_LOSSES

    @property
    def is_empty(self) -> bool:
        return not self.facts and not self.losses


class Outbox:
    """Facts by cluster. Every batch that is taken must come back as written or not written."""

    def __init__(self, limits: OutboxLimits | None = None) -> None:
        self._limits = limits or OutboxLimits()
        self._clusters: dict[ClusterId, _Waiting] = {}
        self.waiting = 0
        self.lost = NO_LOSSES
        """All that was ever given up."""

    def add(self, cluster: ClusterId, facts: Iterable[SeenFact], steady: float) -> None:
        """Have facts written, some seconds from now."""
        waiting = self._clusters.setdefault(cluster, self._new())
        if waiting.is_empty:
            waiting.since = steady
        before = len(waiting.facts)
        waiting.facts += facts
        self.waiting += len(waiting.facts) - before
        self._shrink()

    def seconds_until_due(self, steady: float) -> float | None:
        """When to look again; None while nothing waits."""
        times = [self._due_in(waiting, steady) for waiting in self._clusters.values() if not waiting.is_empty]
        return min(times, default=None)

    def take_due(self, steady: float, *, all_of_it: bool = False) -> list[Batch]:
        """What is to be written now: one batch of each cluster whose time has come, or that has anything."""
        due = [
            cluster
            for cluster, waiting in self._clusters.items()
            if not waiting.is_empty and (all_of_it or self._due_in(waiting, steady) <= 0)
        ]
        batches = [self._take(cluster, steady) for cluster in due]
        self._forget_idle(steady)
        return batches

    def give_back(self, batch: Batch) -> None:
        """It could not be written: put it in front of what came since."""
        waiting = self._clusters.setdefault(batch.cluster, self._new())
        waiting.facts[:0] = batch.facts
        waiting.since, waiting.losses = batch.since, waiting.losses + batch.losses
        waiting.allowance.refund()
        self.waiting += len(batch.facts)
        self._shrink()

    def oldest_since(self) -> float | None:
        """When the oldest fact that waits was seen, in steady time."""
        return min((waiting.since for waiting in self._clusters.values() if not waiting.is_empty), default=None)

    def _new(self) -> _Waiting:
        return _Waiting(Allowance(self._limits.burst, self._limits.per_hour))

    def _due_in(self, waiting: _Waiting, steady: float) -> float:
        is_full = len(waiting.facts) >= self._limits.segment_facts or self.waiting > self._limits.waiting_facts / 2
        settled = 0.0 if is_full else waiting.since + self._limits.settle_seconds - steady
        return max(settled, waiting.allowance.seconds_left(steady))

    def _take(self, cluster: ClusterId, steady: float) -> Batch:
        waiting, most = self._clusters[cluster], self._limits.segment_facts
        batch = Batch(cluster, tuple(waiting.facts[:most]), waiting.since, waiting.losses)
        del waiting.facts[:most]
        waiting.losses = NO_LOSSES
        waiting.since = steady
        waiting.allowance.spend(steady)
        self.waiting -= len(batch.facts)
        return batch

    def _shrink(self) -> None:
        """Make room at the cost of the cluster that has most waiting; by half, so that this happens rarely."""
        while self.waiting > self._limits.waiting_facts:
            waiting = max(self._clusters.values(), key=lambda one: len(one.facts))
            kept, losses = coalesce(waiting.facts, most=len(waiting.facts) // 2)
            self.waiting -= len(waiting.facts) - len(kept)
            waiting.facts, waiting.losses = kept, waiting.losses + losses
            self.lost += losses

    def _forget_idle(self, steady: float) -> None:
        idle = [id_ for id_, one in self._clusters.items() if one.is_empty and one.allowance.is_full(steady)]
        for cluster in idle:
            del self._clusters[cluster]
