"""Follows each cluster that was seen alive and records its end; notes in the store carry this over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.roster import Roster, Sight
from raykeeper.history.observer.session_ends import Ending, SessionEnds
from raykeeper.layout.keys import ClusterId, ObservedKey, parse_observed_key
from raykeeper.layout.records import CLUSTER_DELETED, CLUSTER_SUSPENDED, HEAD_LOST
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

_BODY = b"{}\n"


class Notes:
    """One small object for each open cluster."""

    def __init__(self, store: ObjectStore, observer: str, namespaces: Collection[str]) -> None:
        self._store = store
        self._observer = observer
        self._namespaces = namespaces
        """Those that are watched; none stands for all."""
        self._written: set[ClusterId] = set()

    async def load(self) -> set[ClusterId]:
        """The clusters noted before, as far as they can be seen by this observer."""
        async for stat in self._store.list(ObservedKey.prefix(self._observer)):
            note = parse_observed_key(stat.key)
            if note is not None and (not self._namespaces or note.namespace in self._namespaces):
                self._written.add(ClusterId(note.namespace, note.cluster, note.uid))
        return set(self._written)

    async def add(self, cluster: ClusterId) -> None:
        if cluster not in self._written:
            await self._store.put(self._key(cluster), _BODY)
            self._written.add(cluster)

    async def remove(self, cluster: ClusterId) -> None:
        await self._store.delete(self._key(cluster))
        self._written.discard(cluster)

    def _key(self, cluster: ClusterId) -> str:
        return ObservedKey(self._observer, cluster.namespace, cluster.cluster, cluster.uid).key


STUCK_SECONDS: Final = 300.0
"""How long a head is waited for after its cluster is gone. Its collector beats until the end of its grace period, and
no beat must come after the closing; but a pod of a lost node may hang for ever."""
LATE_SECONDS: Final = 300.0
"""How long after a cluster's end sessions are still looked for: a collector may only now get through to the store."""


def ending_of(sight: Sight, *, gone_seconds: float) -> str | None:
    """Why the session of a cluster that was seen alive is over; None while it is not, or not for sure."""
    if not sight.is_there:
        return CLUSTER_DELETED if not sight.has_living_head or gone_seconds >= STUCK_SECONDS else None
    # One that is being deleted may lose its head first; its end is near and says more.
    if sight.has_living_head or not sight.had_head or sight.is_being_deleted:
        return None
    return CLUSTER_SUSPENDED if sight.is_suspended else HEAD_LOST


_VISITED_AT_ONCE = 16

log = Log("raykeeper.history.observer")


@dataclass(frozen=True)
class ClosingPace:
    """How soon and how often a cluster is looked at."""

    look_seconds: float = 1.0
    """Between two rounds."""
    settle_seconds: float = 3.0
    """After a change: an operator makes a new head within seconds, and then the old one is no news."""
    head_seconds: float = 5.0
    """Between two looks whether the head of a cluster that is gone has gone too."""
    retry: Backoff = Backoff(base=2.0, limit=60.0, jitter=0.2)
    """While the store cannot be reached."""


@dataclass
class _Case:
    """One cluster that was seen alive by this observer."""

    due_at: float
    """When it is looked at next, in steady time."""
    was_there: bool = True
    """False for one that was gone when this observer began; a note says it was seen."""
    gone_at: float | None = None
    ending: Ending | None = None
    """What was written down last."""
    failures: int = 0


class Closer:
    """All clusters that were seen and are not closed for good."""

    def __init__(
        self,
        roster: Roster,
        notes: Notes,
        ends: SessionEnds,
        clock: Clock,
        metrics: ObserverMetrics,
        may_write: Callable[[], bool],
        pace: ClosingPace | None = None,
    ) -> None:
        self._roster = roster
        self._notes = notes
        self._ends = ends
        self._clock = clock
        self._metrics = metrics
        self._may_write = may_write
        self._pace = pace or ClosingPace()
        self._cases: dict[ClusterId, _Case] = {}
        self._due: set[ClusterId] = set()

    def look_at(self, cluster: ClusterId) -> None:
        """Something about the cluster's life changed."""
        case = self._cases.get(cluster)
        if case is None and self._roster.sight(cluster.uid).is_there:
            case = self._cases[cluster] = _Case(self._clock.steady())
        if case is not None:  # else only pods of it were seen, which are no proof that it lived under our eyes
            self._again(cluster, self._pace.settle_seconds)

    async def run(self) -> None:
        """Look and close until cancelled. Assumes that the roster holds all there is."""
        await self.recall()
        while True:
            if not self._may_write() or not await self.visit_due():
                await asyncio.sleep(self._pace.look_seconds)

    async def visit_due(self) -> bool:
        """Look at some clusters whose time has come; whether more wait."""
        now = self._clock.steady()
        due = [cluster for cluster in self._due if self._cases[cluster].due_at <= now]
        await asyncio.gather(*map(self._visit, due[:_VISITED_AT_ONCE]))
        return len(due) > _VISITED_AT_ONCE

    async def recall(self) -> None:
        """Take up the clusters that were noted before; those that are not there any more went unseen."""
        failures = 0
        while True:
            try:
                noted = await self._notes.load()
                break
            except RaykeeperError as exc:
                failures += 1
                log.warning("notes about clusters cannot be read", cause=str(exc))
                await asyncio.sleep(self._pace.retry.delay(failures))
        for cluster in noted - self._cases.keys():
            self._cases[cluster] = _Case(self._clock.steady(), was_there=False)
            self._due.add(cluster)

    async def _visit(self, cluster: ClusterId) -> None:
        case = self._cases[cluster]
        case.due_at = float("inf")
        self._due.discard(cluster)
        try:
            await self._follow(cluster, case)
            case.failures = 0
        except RaykeeperError as exc:
            case.failures += 1
            if case.failures == 1:
                log.warning("end of a cluster cannot be written yet", cluster=str(cluster), cause=str(exc))
            self._again(cluster, self._pace.retry.delay(case.failures))

    async def _follow(self, cluster: ClusterId, case: _Case) -> None:
        """One look at a cluster: note it, close its session, or forget it."""
        sight, now = self._roster.sight(cluster.uid), self._clock.steady()
        if sight.is_there:
            case.gone_at = None
            await self._notes.add(cluster)
        elif case.gone_at is None:
            case.gone_at = now
        gone_seconds = now - case.gone_at if case.gone_at is not None else 0.0
        reason = ending_of(sight, gone_seconds=gone_seconds)
        if reason is None:
            case.ending = None
            if not sight.is_there:
                self._again(cluster, self._pace.head_seconds)
            return
        await self._close(cluster, case, reason)
        if reason == CLUSTER_DELETED:
            await self._part_from(cluster, gone_seconds)

    async def _close(self, cluster: ClusterId, case: _Case, reason: str) -> None:
        if case.ending is None or case.ending.reason != reason:
            case.ending = Ending(reason, await self._ends.now() if case.was_there else None)
        if await self._ends.close(cluster, case.ending):
            self._metrics.closed.labels(reason).inc()

    async def _part_from(self, cluster: ClusterId, gone_seconds: float) -> None:
        """Forget a cluster that is closed, after a last look for sessions that came late."""
        if gone_seconds < LATE_SECONDS:
            self._again(cluster, LATE_SECONDS - gone_seconds)
            return
        await self._notes.remove(cluster)
        del self._cases[cluster]
        self._due.discard(cluster)

    def _again(self, cluster: ClusterId, seconds: float) -> None:
        """Look at it then, or sooner where that was asked for."""
        case = self._cases[cluster]
        case.due_at = min(case.due_at, self._clock.steady() + seconds)
        self._due.add(cluster)
