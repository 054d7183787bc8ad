"""What became of RayJobs, read back from the store: by their names, and by the clusters that they had."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Sequence
from datetime import datetime

from raykeeper.history.bounded import Bounded
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.keys import RayJobId, parse_rayjob_key
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStat, ObjectStore
from raykeeper.times import EPOCH

MOST_OF_CLUSTER = 200
"""RayJobs of one cluster that are read, the newest of them: many may share one by `clusterSelector`."""
MOST_OF_NAME = 20
"""RayJobs that had one name after the other."""
_REMEMBERED = 2_000  # those that ended, some 3 KB each
_READ_AT_ONCE = 16

log = Log("raykeeper.history.kubefacts")


class RayJobReader:
    """Records of RayJobs. One whose RayJob ended never changes, so it is remembered."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._ended: Bounded[RayJobId, RayJobRecord] = Bounded(_REMEMBERED)
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def of_cluster(self, namespace: str, cluster: str) -> tuple[RayJobRecord, ...]:
        """The newest RayJobs that ran on the cluster of that name, newest first."""
        return await self._newest(RayJobId.cluster_prefix(namespace, cluster), MOST_OF_CLUSTER)

    async def named(self, namespace: str, rayjob: str) -> tuple[RayJobRecord, ...]:
        """The newest RayJobs of that name, newest first."""
        return await self._newest(RayJobId.prefix(namespace, rayjob), MOST_OF_NAME)

    async def ids(self, namespace: str, most: int) -> list[RayJobId]:
        """RayJobs of a namespace, in the order of their names, up to so many."""
        found = list[RayJobId]()
        async for stat in self._store.list(RayJobId.namespace_prefix(namespace)):
            if len(found) >= most:
                break
            if (id_ := _readable(stat)) is not None:
                found.append(id_)
        return found

    async def read(self, ids: Sequence[RayJobId]) -> list[RayJobRecord]:
        """The records of these; those that cannot be read are left out."""
        records = await asyncio.gather(*map(self._read, ids))
        return [record for record in records if record is not None]

    async def _newest(self, prefix: str, most: int) -> tuple[RayJobRecord, ...]:
        newest: list[tuple[datetime, str, RayJobId]] = []
        async for stat in self._store.list(prefix):
            if (id_ := _readable(stat)) is not None:
                heapq.heappush(newest, (stat.modified, stat.key, id_))
                if len(newest) > most:
                    heapq.heappop(newest)
        records = await asyncio.gather(*(self._read(id_) for _, _, id_ in newest))
        return newest_first(record for record in records if record is not None)

    async def _read(self, id_: RayJobId) -> RayJobRecord | None:
        if (known := self._ended.get(id_)) is not None:
            return known
        try:
            async with self._reads:
                record = await find_record(self._store, id_.key, RayJobRecord)
        except DamagedRecord as exc:
            log.warning("record of a RayJob cannot be read", rayjob=str(id_), cause=str(exc))
            return None
        if record is not None and record.is_final:
            self._ended.put(id_, record)
        return record


def newest_first(records: Iterable[RayJobRecord]) -> tuple[RayJobRecord, ...]:
    return tuple(sorted(records, key=lambda one: (one.created_at or EPOCH, one.name, one.uid), reverse=True))


def _readable(stat: ObjectStat) -> RayJobId | None:
    id_ = parse_rayjob_key(stat.key)
    if id_ is not None and stat.size > RayJobRecord.limit_bytes:
        log.warning("record of a RayJob is too large to be one", key=stat.key, size=stat.size)
        return None
    return id_
