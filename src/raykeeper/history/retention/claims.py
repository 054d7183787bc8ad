"""Whose turn it is to sweep, agreed on by objects that can be created only once.

Time is cut into stretches by the store's clock. Whoever creates the claim of a stretch may sweep until it is over, and
may claim the next one a minute before. Nothing is written over and nothing is taken back: a sweeper that was killed
loses the rest of its stretch. Two sweepers at once would be harmless; this saves their work.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from raykeeper.clock import Clock
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.records import encode_record
from raykeeper.layout.retention import CLAIMS_PREFIX, Claim, claim_key, parse_claim_key
from raykeeper.storage.store import ObjectStore

STRETCH = timedelta(minutes=5)
_EARLY_SECONDS = 60.0
_KEPT_STRETCHES = 2  # of old claims, which only tell who swept


class Claims:
    """One candidate."""

    def __init__(
        self, store: ObjectStore, clock: Clock, store_clock: StoreClock, name: str, stretch: timedelta = STRETCH
    ) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._name = name
        self._stretch = stretch
        self._slot = -1
        self._ends_at = float("-inf")

    async def take(self) -> bool:
        """Whether it is our turn, now and until the end of this stretch. Near its end the next one is claimed."""
        is_ours = self.is_ours
        if is_ours and self.seconds_left > _EARLY_SECONDS:
            return True
        now = await self._store_clock.now()
        slot = int(now.timestamp() // self._stretch.total_seconds())
        slot = max(slot, self._slot + 1) if is_ours else slot
        if not await self._store.create(claim_key(slot), encode_record(Claim(by=self._name, at=now))):
            return is_ours
        self._slot = slot
        self._ends_at = self._clock.steady() + (slot + 1) * self._stretch.total_seconds() - now.timestamp()
        await self._forget_old(slot)
        return True

    async def keep(self) -> None:
        """Claim one stretch after the other, until cancelled or until somebody else has one."""
        is_ours = True
        while is_ours:
            is_ours = await self.take()
            await asyncio.sleep(_EARLY_SECONDS / 3)

    @property
    def is_ours(self) -> bool:
        """Whether our stretch lasts."""
        return self._clock.steady() < self._ends_at

    @property
    def seconds_left(self) -> float:
        """Of this stretch; 0 where it is not ours."""
        return max(0.0, self._ends_at - self._clock.steady())

    async def _forget_old(self, slot: int) -> None:
        async for stat in self._store.list(CLAIMS_PREFIX):
            old = parse_claim_key(stat.key)
            if old is not None and old < slot - _KEPT_STRETCHES:
                await self._store.delete(stat.key)
