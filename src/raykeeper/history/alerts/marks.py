"""Claims and ends of alerts in the store: of several servers exactly one makes an attempt.

There is no compare-and-set, so a claim whose owner died is followed by the next number, which is created once again.
"""

from __future__ import annotations

import os
from datetime import datetime

from raykeeper.clock import Clock
from raykeeper.history.alerts.due import Claim, Marks
from raykeeper.layout.alerts import AlertKey, AlertMark, parse_mark_key, receiver_key
from raykeeper.layout.records import encode_record
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

MOST_LISTED = 50_000
"""Marks of one session that are looked at: those of ten thousand jobs."""


class AlertMarks:
    """Raises what the store raises."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def since(self, receiver: str) -> datetime:
        """When this receiver was first seen by any server, by the store's clock."""
        key = receiver_key(receiver)
        try:
            return (await self._store.stat(key)).modified
        except ObjectMissing:
            await self._store.create(key, self._mark())
            return (await self._store.stat(key)).modified

    async def read(self, prefix: str) -> dict[AlertKey, Marks]:
        """All marks below the prefix of a session or RayJob."""
        claims, over, listed = dict[AlertKey, Claim](), set[AlertKey](), 0
        async for stat in self._store.list(prefix):
            listed += 1
            if listed > MOST_LISTED:
                break
            found = parse_mark_key(prefix, stat.key)
            if found is None:
                continue
            alert, attempt = found
            if attempt is None:
                over.add(alert)
            elif alert not in claims or attempt > claims[alert].attempt:
                claims[alert] = Claim(attempt, stat.modified)
        return {alert: Marks(claims.get(alert), alert in over) for alert in {*claims, *over}}

    async def claim(self, alert: AlertKey, attempt: int) -> bool:
        """Whether this attempt is ours: nobody else has it, and the alert is not over."""
        if not await self._store.create(alert.claim(attempt), self._mark()):
            return False
        if attempt == 0:
            return True
        # Whoever had the attempt before may have been told 2xx late.
        return await self._store.find(alert.sent) is None and await self._store.find(alert.gave_up) is None

    async def note_sent(self, alert: AlertKey) -> None:
        await self._store.create(alert.sent, self._mark())

    async def give_up(self, alert: AlertKey) -> bool:
        """Whether it was us who gave up: others need not say so."""
        return await self._store.create(alert.gave_up, self._mark())

    def _mark(self) -> bytes:
        return encode_record(AlertMark(owner=os.urandom(8).hex(), at=self._clock.now()))
