"""Which namespaces a store has anything of."""

from __future__ import annotations

import asyncio

from raykeeper.clock import Clock
from raykeeper.history.store.kube_facts import names_in
from raykeeper.layout.keys import DATA_PREFIX, RAYJOBS_PREFIX
from raykeeper.storage.store import ObjectStore

_BELIEVED_SECONDS = 10.0


class StoredNamespaces:
    """The names, listed again every ten seconds while somebody asks."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._names: frozenset[str] = frozenset()
        self._listed_at = float("-inf")
        self._listing = asyncio.Lock()

    async def names(self) -> frozenset[str]:
        """Raises what the store raises."""
        async with self._listing:
            if self._clock.steady() - self._listed_at >= _BELIEVED_SECONDS:
                found = await asyncio.gather(*(names_in(self._store, one) for one in (DATA_PREFIX, RAYJOBS_PREFIX)))
                self._names, self._listed_at = frozenset().union(*found), self._clock.steady()
        return self._names
