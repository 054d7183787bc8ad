"""What time it is by the store's clock: heartbeats carry its times, and ours may be minutes off."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.layout.keys import VERSION
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

_MEASURE_SECONDS = 600.0  # a clock drifts by milliseconds in that time; a step by NTP is noticed soon enough

log = Log("raykeeper.history.clock")


class StoreClock:
    """Our clock, corrected by how far the store's was from it when we last looked."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._offset = timedelta(0)
        self._measured_at = float("-inf")

    async def now(self) -> datetime:
        if self._clock.steady() - self._measured_at >= _MEASURE_SECONDS:
            self._measured_at = self._clock.steady()
            await self._measure()
        return self._clock.now() + self._offset

    async def _measure(self) -> None:
        """Write a small object and look at its time. Who may only read relies on the clock of this machine."""
        key = f"{VERSION}/clock/{os.urandom(8).hex()}"
        try:
            offset = await self._store.put_and_compare_clocks(key, b"?", self._clock)
            await self._store.delete(key)
        except RaykeeperError as exc:
            log.warning("cannot compare clocks with the store; trusting this machine's", cause=str(exc))
            return
        self._offset = timedelta(seconds=offset.seconds)
        if abs(offset.seconds) > 1 + offset.error_seconds:
            log.info("the store's clock differs from ours", seconds=round(offset.seconds, 3))
