"""What is left of clusters and RayJobs that have no session any more, or never had one: facts of Kubernetes and records
of RayJobs. They go by the ages of the same rules, some in each sweep.

Nothing is hidden first: nobody has such an object open for long, and a reader of half of them sees fewer facts. What
tells the age, and by which the rest is found, goes last, so that after a crash the next sweep goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from raykeeper.history.retention_policy import FOREVER, Outcome, RetentionPolicy
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.kube_facts import incarnations_of, names_in, names_of_clusters
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.alerts import rayjob_alerts_prefix
from raykeeper.layout.keys import (
    KUBE_FOLDER,
    OBSERVED_PREFIX,
    OBSERVED_RAYJOBS_PREFIX,
    RAYJOBS_PREFIX,
    ClusterId,
    KubeFactsKey,
    RayJobId,
    SessionId,
    cluster_prefix,
    parse_observed_key,
    parse_rayjob_key,
    session_record_key,
)
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.rayjobs import COMPLETE, FAILED, RayJobRecord
from raykeeper.layout.records import SessionRecord
from raykeeper.logs import Log
from raykeeper.storage.errors import StoreRefused
from raykeeper.storage.store import ObjectStat, ObjectStore

log = Log("raykeeper.history.retention")

NAMES_A_SWEEP = 5_000
"""Names of clusters, and old records of RayJobs, that one sweep looks at; the next one goes on behind them."""
_SESSIONS_READ = 1_000
"""Of one cluster's name, to know whose facts are still needed; where there are more, all stay."""
ALERTED_FOR = timedelta(days=8)
"""Alerts look back seven days at most: what says that one was sent stays longer, or it would be sent again."""
_DELETED_AT_ONCE = 16
_OUTCOMES = {COMPLETE: Outcome.SUCCEEDED, FAILED: Outcome.FAILED}


@dataclass
class LeftoversFound:
    """What one sweep found and, unless it only looked, removed."""

    clusters: int = 0
    rayjobs: int = 0
    objects: int = 0


class Leftovers:
    """Looks for them, a part of the store in each sweep."""

    def __init__(
        self,
        store: ObjectStore,
        store_clock: StoreClock,
        policy: RetentionPolicy,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._store_clock = store_clock
        self._policy = policy
        self._may_go_on = may_go_on
        self._cluster_after: tuple[str, str] = ("", "")
        self._rayjob_after = ""

    async def sweep(self, *, may_write: bool) -> LeftoversFound:
        """Raises what the store raises, but for what it refuses: that is tried again by the next sweep."""
        found = LeftoversFound()
        try:
            await self._sweep_clusters(found, may_write=may_write)
            await self._sweep_rayjobs(found, may_write=may_write)
        except StoreRefused as exc:
            log.warning("what is left of a cluster or RayJob cannot be removed", cause=str(exc))
        return found

    async def _sweep_clusters(self, found: LeftoversFound, *, may_write: bool) -> None:
        now, alive, looked_at = await self._store_clock.now(), await self._observed_clusters(), 0
        async for names in names_of_clusters(self._store):
            next_ones = [name for name in names if _place(*name) > self._cluster_after]
            wanted = [name for name in next_ones if self._longest(name[0]) != FOREVER]
            for leftovers in await asyncio.gather(*(self._of_cluster(*name, now, alive) for name in wanted)):
                for cluster, stats in leftovers:
                    found.clusters += 1
                    found.objects += len(stats)
                    if may_write:
                        await self._delete(stat.key for stat in stats)
                        log.info(
                            "facts of a cluster removed", cluster=str(cluster), uid=cluster.uid, objects=len(stats)
                        )
            looked_at += len(wanted)
            if next_ones:
                self._cluster_after = _place(*next_ones[-1])
            if looked_at >= NAMES_A_SWEEP or not self._may_go_on():
                return
        self._cluster_after = ("", "")

    async def _of_cluster(
        self, namespace: str, cluster: str, now: datetime, alive: frozenset[ClusterId]
    ) -> list[tuple[ClusterId, list[ObjectStat]]]:
        """Facts that nobody needs any more, by the uid that they are about; the oldest object first."""
        folders = await self._store.list_folders(cluster_prefix(namespace, cluster))
        if KUBE_FOLDER not in folders:
            return []
        old = list[tuple[ClusterId, list[ObjectStat]]]()
        for one in await incarnations_of(self._store, namespace, cluster):
            stats = [stat async for stat in self._store.list(KubeFactsKey.prefix(namespace, cluster, one.uid))]
            stats.sort(key=lambda stat: (stat.modified, stat.key))
            if stats and one not in alive and self._is_old(now - stats[-1].modified, self._longest(namespace)):
                old.append((one, stats))
        if not old:
            return []
        needed = await self._uids_of(namespace, cluster, folders)
        return [] if needed is None else [pair for pair in old if pair[0].uid not in needed]

    async def _uids_of(self, namespace: str, cluster: str, folders: Sequence[str]) -> set[str] | None:
        """Of the clusters that the sessions of this name were of; None where one of them does not say."""
        if len(folders) > _SESSIONS_READ:
            return None
        uids = set[str]()
        for session in folders:
            if not await self._is_session(namespace, cluster, session):
                continue
            try:
                key = session_record_key(SessionId(namespace, cluster, from_segment(session)))
                record = await find_record(self._store, key, SessionRecord)
            except (DamagedRecord, ValueError):
                return None
            if record is None or not record.cluster_uid:
                return None
            uids.add(record.cluster_uid)
        return uids

    async def _is_session(self, namespace: str, cluster: str, folder: str) -> bool:
        """Whether there is something of a session there: on a disk, folders outlive what was in them."""
        if folder == KUBE_FOLDER:
            return False
        async for _ in self._store.list(f"{cluster_prefix(namespace, cluster)}{folder}/"):
            return True
        return False

    async def _sweep_rayjobs(self, found: LeftoversFound, *, may_write: bool) -> None:
        now, noted, looked_at = await self._store_clock.now(), await self._observed_rayjobs(), 0
        for namespace in await names_in(self._store, RAYJOBS_PREFIX):
            prefix = RayJobId.namespace_prefix(namespace)
            is_begun = self._rayjob_after.startswith(prefix)
            shortest = self._shortest(namespace)
            if shortest == FOREVER or (prefix < self._rayjob_after and not is_begun):
                continue
            async for stat in self._store.list(prefix, after=self._rayjob_after if is_begun else ""):
                id_ = parse_rayjob_key(stat.key)
                if id_ is None or not self._is_old(now - stat.modified, shortest):
                    continue
                looked_at += 1
                if (keys := await self._of_rayjob(id_, now - stat.modified, noted)) is not None:
                    found.rayjobs += 1
                    found.objects += len(keys)
                    if may_write:
                        await self._delete(keys)
                        log.info("record of a RayJob removed", rayjob=str(id_), uid=id_.uid)
                self._rayjob_after = stat.key
                if looked_at >= NAMES_A_SWEEP or not self._may_go_on():
                    return
        self._rayjob_after = ""

    async def _of_rayjob(self, id_: RayJobId, age: timedelta, noted: frozenset[RayJobId]) -> list[str] | None:
        """All that is stored about it, its record last; None where it stays."""
        try:
            record = await find_record(self._store, id_.key, RayJobRecord)
        except DamagedRecord as exc:
            log.warning("record of a RayJob cannot be read, and stays", rayjob=str(id_), cause=str(exc))
            return None
        if record is None or (id_ in noted and not record.is_final):
            return None
        status = record.last.deployment_status if record.last else ""
        limit = self._policy.rule_for(id_.namespace).age_of(_OUTCOMES.get(status, Outcome.UNKNOWN))
        if not self._is_old(age, limit):
            return None
        for cluster in record.clusters:
            for folder in await self._store.list_folders(cluster_prefix(id_.namespace, cluster)):
                if await self._is_session(id_.namespace, cluster, folder):
                    return None  # it is shown with the RayJob
        alerts = [stat.key async for stat in self._store.list(rayjob_alerts_prefix(id_))]
        if alerts and age < ALERTED_FOR:
            return None
        return [*(id_.cluster_key(cluster) for cluster in record.clusters), *alerts, id_.key]

    def _longest(self, namespace: str) -> timedelta:
        """How long something is kept of which nobody knows how it went."""
        return self._policy.rule_for(namespace).age_of(Outcome.UNKNOWN)

    def _shortest(self, namespace: str) -> timedelta:
        rule = self._policy.rule_for(namespace)
        return min(rule.age_of(outcome) for outcome in Outcome)

    def _is_old(self, age: timedelta, limit: timedelta) -> bool:
        return age >= max(limit, self._policy.min_age)

    async def _observed_clusters(self) -> frozenset[ClusterId]:
        """Those that an observer saw alive, and whose end it has not seen."""
        keys = [parse_observed_key(stat.key) async for stat in self._store.list(OBSERVED_PREFIX)]
        return frozenset(ClusterId(key.namespace, key.cluster, key.uid) for key in keys if key)

    async def _observed_rayjobs(self) -> frozenset[RayJobId]:
        keys = [parse_rayjob_key(stat.key) async for stat in self._store.list(OBSERVED_RAYJOBS_PREFIX)]
        return frozenset(key for key in keys if key)

    async def _delete(self, keys: Iterable[str]) -> None:
        """In their order as far as it counts: the last one alone, after all others."""
        *others, last = keys
        for start in range(0, len(others), _DELETED_AT_ONCE):
            await asyncio.gather(*map(self._store.delete, others[start : start + _DELETED_AT_ONCE]))
        await self._store.delete(last)


def _place(namespace: str, cluster: str) -> tuple[str, str]:
    """In the order in which stores list them."""
    return to_segment(namespace), to_segment(cluster)
