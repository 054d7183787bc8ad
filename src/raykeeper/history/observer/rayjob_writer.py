"""Writes the records of RayJobs, and through notes also what happened while nobody looked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.outbox import Allowance
from raykeeper.history.observer.rayjobs import RayJobs
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.keys import RayJobId, parse_rayjob_key
from raykeeper.layout.rayjobs import RayJobRecord, merged_rayjob
from raykeeper.layout.records import encode_record
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.observer")

_WRITTEN_AT_ONCE = 16
_BURST, _PER_HOUR = 20, 60  # writes of one RayJob: some at once, then one a minute
_EMPTY = b"{}\n"


@dataclass(frozen=True)
class RayJobPace:
    """How soon changes are written."""

    settle_seconds: float = 1.0
    """Between two rounds: changes that follow each other are one write."""
    retry: Backoff = Backoff(base=1.0, limit=30.0, jitter=0.2)
    """While the store cannot be reached."""


class RayJobWriter:
    """Brings the records of RayJobs up to date, and through notes also those that were deleted while nobody looked."""

    def __init__(
        self,
        rayjobs: RayJobs,
        store: ObjectStore,
        observer: str,
        namespaces: Collection[str],
        clock: Clock,
        metrics: ObserverMetrics,
        may_write: Callable[[], bool],
        pace: RayJobPace | None = None,
    ) -> None:
        self._rayjobs = rayjobs
        self._store = store
        self._observer = observer
        self._namespaces = namespaces
        self._clock = clock
        self._metrics = metrics
        self._may_write = may_write
        self._pace = pace or RayJobPace()
        self._noted: set[RayJobId] = set()
        self._allowances: dict[RayJobId, Allowance] = {}
        self._failures = 0

    async def run(self) -> None:
        """Write for ever. Assumes that the RayJobs that are there have been seen."""
        await self.recall()
        while True:
            await asyncio.sleep(self._pace.retry.delay(self._failures) if self._failures else self._pace.settle_seconds)
            await self.write_due()

    async def write_due(self, *, all_of_it: bool = False) -> None:
        """Write those whose time has come, or all of them; what cannot be written waits."""
        now = self._clock.steady()
        due = [id_ for id_ in self._rayjobs.waiting if all_of_it or self._seconds_left(id_, now) <= 0]
        is_good = True
        while due and is_good and self._may_write():
            some, due = due[:_WRITTEN_AT_ONCE], due[_WRITTEN_AT_ONCE:]
            is_good = all(await asyncio.gather(*map(self._write, some)))
        self._failures = 0 if is_good else self._failures + 1
        self._allowances = {id_: one for id_, one in self._allowances.items() if not one.is_full(now)}

    async def recall(self) -> None:
        """Take up the notes of before: a RayJob that was noted and is not there was deleted."""
        failures = 0
        while True:
            try:
                async for stat in self._store.list(RayJobId.notes_prefix(self._observer)):
                    id_ = parse_rayjob_key(stat.key)
                    if id_ is not None and (not self._namespaces or id_.namespace in self._namespaces):
                        self._noted.add(id_)
                break
            except RaykeeperError as exc:
                failures += 1
                log.warning("notes about RayJobs cannot be read", cause=str(exc))
                await asyncio.sleep(self._pace.retry.delay(failures))
        for id_ in self._noted:
            self._rayjobs.miss(id_)

    def _seconds_left(self, id_: RayJobId, now: float) -> float:
        allowance = self._allowances.get(id_)
        return allowance.seconds_left(now) if allowance else 0.0

    async def _write(self, id_: RayJobId) -> bool:
        """Whether the record is in the store; else it waits again."""
        record = self._rayjobs.waiting.pop(id_)
        is_written = False
        try:
            await self._bring_up_to_date(id_, record)
            is_written = True
        except RaykeeperError as exc:
            self._metrics.write_failures.inc()
            if not self._failures:
                log.warning("records of RayJobs cannot be written, they wait", cause=str(exc))
        finally:
            if not is_written:  # also when it was cancelled
                self._rayjobs.give_back(id_, record)
        return is_written

    async def _bring_up_to_date(self, id_: RayJobId, record: RayJobRecord) -> None:
        """The note first, and last away again: whoever comes after a crash finds what to look for."""
        stored = await self._stored(id_)
        whole = merged_rayjob(stored, record)
        if not whole.is_final and id_ not in self._noted:
            await self._store.put(id_.note_key(self._observer), _EMPTY)
            self._noted.add(id_)
        if whole != stored:
            for cluster in whole.clusters:
                if stored is None or cluster not in stored.clusters:
                    await self._store.put(id_.cluster_key(cluster), _EMPTY)
            await self._store.put(id_.key, encode_record(whole))
            self._allowances.setdefault(id_, Allowance(_BURST, _PER_HOUR)).spend(self._clock.steady())
            self._metrics.rayjobs.inc()
        if whole.is_final and id_ in self._noted:
            await self._store.delete(id_.note_key(self._observer))
            self._noted.discard(id_)

    async def _stored(self, id_: RayJobId) -> RayJobRecord | None:
        try:
            return await find_record(self._store, id_.key, RayJobRecord)
        except DamagedRecord as exc:
            log.warning("record of a RayJob cannot be read, a new one is begun", rayjob=str(id_), cause=str(exc))
            return None
