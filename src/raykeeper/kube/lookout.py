"""Looks for other installations at start, and once more under our own lease."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.installations import (
    LEASE_NAME,
    Coverage,
    Installation,
    Since,
    Verdict,
    judge,
    parse_installation,
    refusal,
)
from raykeeper.kube.resources import LEASES
from raykeeper.logs import Log

log = Log("raykeeper.kube.lookout")

LOOK_SECONDS = 1.0  # half a retry period of the election: a renewal is seen soon, at little cost


@dataclass(frozen=True)
class FirstSight:
    """Another installation as we first saw it, and when."""

    installation: Installation
    seen_at: float


class Lookout:
    """Knows which other installations were seen since the process started, and which of them renewed since."""

    def __init__(self, kube: Kube, namespace: str, covers: Coverage, identity: str, clock: Clock) -> None:
        self._kube = kube
        self._namespace = namespace
        self._covers = covers
        self._identity = identity
        self._clock = clock
        self._first: dict[str, FirstSight] = {}
        self._is_told = False

    async def ensure_alone(self) -> None:
        """Return once no other live installation covers what ours covers; raises AnotherInstallation.

        To be called before the election, so that the second installation never starts, and again under our own lease,
        so that of several started at the same moment one stays. Returns at once where there is no other Lease.
        """
        asked_at = self._clock.steady()
        while True:
            if not await self._is_undecided(asked_at):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _is_undecided(self, asked_at: float) -> bool:
        found = {installation.namespace: installation for installation in await self._observe()}
        ours = found.pop(self._namespace, None)
        if ours is not None and ours.record.holder != self._identity:
            ours = None
        verdicts = [self._verdict(other, asked_at, ours) for other in found.values()]
        return Verdict.UNDECIDED in verdicts

    def _verdict(self, other: Installation, asked_at: float, ours: Installation | None) -> Verdict:
        if not other.covers.overlaps(self._covers):
            return Verdict.HARMLESS
        steady = self._clock.steady()
        first = self._first.setdefault(other.namespace, FirstSight(other, steady))
        since = Since(first_seen=steady - first.seen_at, asked=steady - asked_at)
        verdict = judge(first.installation, other, since, ours, self._clock.now())
        if verdict is Verdict.REFUSE:
            raise refusal(other, self._namespace, self._covers)
        return verdict

    async def _observe(self) -> list[Installation]:
        try:
            leases = await self._kube.list(LEASES, fields={"metadata.name": LEASE_NAME})
        except Forbidden as exc:
            leases = await self._observe_where_allowed(exc)
        return [parse_installation(lease) for lease in leases]

    async def _observe_where_allowed(self, cause: Forbidden) -> list[JSON]:
        """The Leases of the namespaces we cover and our own, which are all that a namespaced installation may read."""
        leases, hidden = [], []
        for namespace in sorted(self._covers.namespaces | {self._namespace}):
            try:
                lease = await self._kube.find(LEASES, ObjectKey(namespace, LEASE_NAME))
            except Forbidden:
                hidden.append(namespace)
            else:
                leases += [lease] if lease is not None else []
        self._tell_blindness(cause, hidden)
        return leases

    def _tell_blindness(self, cause: Forbidden, hidden: list[str]) -> None:
        if not self._is_told:
            log.warning("other installations outside our namespaces cannot be seen", cause=str(cause), hidden=hidden)
        self._is_told = True
