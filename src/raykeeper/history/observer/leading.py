"""One observer among all replicas: waits for the Lease, observes under it, and starts anew when the Lease is lost."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Final

from raykeeper.api.meta import ObjectKey
from raykeeper.errors import Unavailable
from raykeeper.history.observer.watching import Observer, Surroundings
from raykeeper.kube.backoff import Backoff
from raykeeper.kube.errors import ApiError, Forbidden
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.lease import ElectionSettings, new_identity
from raykeeper.kube.leader.leaseclient import LeadershipLost
from raykeeper.kube.resources import LEASES
from raykeeper.logs import Log
from raykeeper.storage.settings.storesettings import StoreSettings

FORBIDDEN_SECONDS: Final = 300.0
"""Between two looks whether somebody gave us the right to observe."""
_AGAIN = Backoff(base=1.0, limit=60.0, jitter=0.3)

log = Log("raykeeper.history.observer")


def lease_name(store: StoreSettings, namespaces: Iterable[str]) -> str:
    """The same for all who would write the same facts to the same place, and for nobody else."""
    place = "\n".join([store.backend, store.bucket, store.root, store.endpoint, *sorted(namespaces)])
    return f"raykeeper-history-{hashlib.blake2b(place.encode(), digest_size=5).hexdigest()}"


class Leading:
    """A candidate for the observers' Lease, for as long as the program runs."""

    def __init__(self, around: Surroundings, lease: ObjectKey, election: ElectionSettings | None = None) -> None:
        self._around = around
        self._lease = lease
        self._election = election or ElectionSettings()
        self._failures = 0

    async def run(self) -> None:
        """Observe whenever it is our turn, until cancelled. Nothing that goes wrong here ends the program."""
        while True:
            try:
                await self._wait_for_rights()
                await self._observe()
            except LeadershipLost as exc:
                log.warning("not the observer any more", cause=str(exc))
            except (ApiError, Unavailable) as exc:
                log.warning("cannot observe kubernetes", cause=str(exc))
            except Exception:
                log.exception("observer failed by a bug, it starts anew")
            self._failures += 1
            await asyncio.sleep(_AGAIN.delay(self._failures))

    async def _wait_for_rights(self) -> None:
        """Return once the Lease may be read: a service account without any rights is no reason to ask all the time."""
        is_told = False
        while True:
            try:
                await self._around.kube.find(LEASES, self._lease)
            except Forbidden as exc:
                if not is_told:
                    log.warning("kubernetes facts are not recorded: rights are missing", cause=str(exc))
                is_told = True
                await asyncio.sleep(FORBIDDEN_SECONDS)
            else:
                return

    async def _observe(self) -> None:
        around = self._around
        elector = LeaderElector(
            around.kube,
            self._lease,
            new_identity(),
            clock=around.clock,
            metrics=around.kube_metrics,
            settings=self._election,
        )

        async def lead() -> None:
            lease = await around.kube.get(LEASES, self._lease)
            self._failures = 0
            await Observer(around, lease["metadata"]["uid"], lambda: elector.fence.is_open).run()

        await elector.run(lead)
