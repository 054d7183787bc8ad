"""Writes batches of facts as segments, and waits out a store that cannot be reached."""

from __future__ import annotations

import asyncio

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.observer.metrics import ObserverMetrics
from raykeeper.history.observer.outbox import Batch, Losses, Outbox
from raykeeper.layout.keys import ClusterId, KubeFactsKey
from raykeeper.layout.kube_facts import encode_facts
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore
from raykeeper.times import to_ns

_WRITTEN_AT_ONCE = 8
BACKOFF = Backoff(base=1.0, limit=30.0, jitter=0.2)
_LOOK_SECONDS = 1.0  # how late a first fact is noticed; it waits for others anyway

log = Log("raykeeper.history.observer")


class Writer:
    """Takes from the outbox what is due until it is cancelled."""

    def __init__(
        self,
        outbox: Outbox,
        store: ObjectStore,
        clock: Clock,
        metrics: ObserverMetrics,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._backoff = backoff
        self._slots = asyncio.Semaphore(_WRITTEN_AT_ONCE)
        self._failures = 0
        self._told = Losses()
        self._last_ns = 0

    async def run(self) -> None:
        """Write for ever; every failure of the store is waited out."""
        while True:
            await self._write_all(self._outbox.take_due(self._clock.steady()))
            self._show()
            await asyncio.sleep(self._pause())

    async def flush(self) -> None:
        """Write all that waits, once; for the end of the program."""
        await self._write_all(self._outbox.take_due(self._clock.steady(), all_of_it=True))

    async def _write_all(self, batches: list[Batch]) -> None:
        outcomes = await asyncio.gather(*map(self._write, batches))
        if not all(outcomes):
            self._failures += 1
        elif batches and self._failures:
            log.info("kubernetes facts are written again")
            self._failures = 0

    async def _write(self, batch: Batch) -> bool:
        """Whether the batch is in the store; else it waits again."""
        data = encode_facts(batch.lines(self._clock.now()))
        is_written = False
        try:
            async with self._slots:
                await self._create(batch, data)
            is_written = True
        except RaykeeperError as exc:
            self._failed(exc)
        finally:
            if not is_written:  # also when it was cancelled
                self._outbox.give_back(batch)
        if is_written:
            self._metrics.segments.inc()
            self._metrics.facts.inc(len(batch.facts))
        return is_written

    async def _create(self, batch: Batch, data: bytes) -> None:
        """Under the first name that is free: another replica may have led a moment ago."""
        while not await self._store.create(self._next_key(batch.cluster), data):
            continue

    def _next_key(self, cluster: ClusterId) -> str:
        """Of this moment, and never the same twice."""
        self._last_ns = max(self._last_ns + 1, to_ns(self._clock.now()))
        return KubeFactsKey(cluster.namespace, cluster.cluster, cluster.uid, self._last_ns).key

    def _failed(self, failure: RaykeeperError) -> None:
        self._metrics.write_failures.inc()
        if not self._failures:
            log.warning("kubernetes facts cannot be written, they wait", cause=str(failure))

    def _pause(self) -> float:
        if self._failures:
            return self._backoff.delay(self._failures)
        due_in = self._outbox.seconds_until_due(self._clock.steady())
        return _LOOK_SECONDS if due_in is None else min(_LOOK_SECONDS, max(0.0, due_in))

    def _show(self) -> None:
        oldest, lost = self._outbox.oldest_since(), self._outbox.lost
        self._metrics.waiting.set(self._outbox.waiting)
        self._metrics.lag.set(0.0 if oldest is None else self._clock.steady() - oldest)
        self._metrics.lost.labels("pod").inc(lost.pods - self._told.pods)
        self._metrics.lost.labels("event").inc(lost.events - self._told.events)
        if lost != self._told:
            log.warning("kubernetes facts were given up", pods=lost.pods, events=lost.events)
        self._told = lost
