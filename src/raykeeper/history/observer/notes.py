"""Which clusters this observer saw alive and has not closed, kept in the store, so that a restart does not forget them.

The notes are kept under the uid of the observers' Lease. It is the same for all replicas and restarts, and another in
every other Kubernetes cluster that shares the bucket: nobody ever closes what another one saw. If somebody deletes the
Lease, the notes of its time are not found again, and what ended unseen since is not closed.
"""

from __future__ import annotations

from collections.abc import Collection

from raykeeper.layout.keys import ClusterId, ObservedKey, parse_observed_key
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
