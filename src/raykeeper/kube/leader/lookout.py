"""Looks for other installations at start, and once more under our own lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError, Forbidden
from raykeeper.kube.leader.installations import (
    LEASE_NAME,
    Coverage,
    Installation,
    Neighbours,
    Ours,
    coverage_in_arguments,
    parse_installation,
)
from raykeeper.kube.resources import LEASES, PODS
from raykeeper.logs import Log

log = Log("raykeeper.kube.lookout")

LOOK_SECONDS = 1.0  # half a retry period of the election: a renewal is seen soon, at little cost


class Lookout:
    """Reads the Leases of all installations it may see."""

    def __init__(self, kube: Kube, ours: Ours, clock: Clock) -> None:
        self._kube = kube
        self._ours = ours
        self._clock = clock
        self._neighbours = Neighbours(ours)
        self._is_told = False
        self._learned: dict[tuple[str, str], Coverage | None] = {}  # by namespace and holder

    async def ensure_alone(self) -> None:
        """Return once no other live installation covers what ours covers; raises AnotherInstallation.

        To be called before the election, so that a second installation never starts, and again under our own lease,
        so that of several started at the same moment one stays. Returns at once where there is no other Lease.
        """
        asked_at = self._clock.steady()
        while True:
            found = await self.observe()
            if self._neighbours.is_alone(found, asked_at, self._clock.steady(), self._clock.now()):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def observe(self) -> list[Installation]:
        try:
            leases = await self._kube.list(LEASES, fields={"metadata.name": LEASE_NAME})
        except Forbidden as exc:
            leases = await self._observe_where_allowed(exc)
        return [await self._with_coverage(parse_installation(lease)) for lease in leases]

    async def _with_coverage(self, found: Installation) -> Installation:
        """The installation with what is known of it from elsewhere, where its Lease does not say what it covers."""
        holder = found.record.holder
        if found.covers is not None or not holder or found.namespace == self._ours.namespace:
            return found
        key = (found.namespace, holder)
        if key not in self._learned:
            self._learned[key] = await self._learn_coverage(found)
            if self._learned[key] is None and self._ours.covers.namespaces:
                log.warning(
                    "another operator does not say which namespaces it covers: make sure that none of them is ours",
                    namespace=found.namespace,
                    holder=holder,
                    ours=str(self._ours.covers),
                )
        return replace(found, covers=self._learned[key])

    async def _learn_coverage(self, found: Installation) -> Coverage | None:
        if found.namespace in self._ours.others:
            return self._ours.others[found.namespace]
        # client-go's users put the pod's name before the underscore.
        name = found.record.holder.rpartition("_")[0]
        try:
            pod = await self._kube.find(PODS.read_as(dict), ObjectKey(found.namespace, name)) if name else None
        except ApiError as exc:
            log.debug("the pod of another operator cannot be read", namespace=found.namespace, cause=str(exc))
            return None
        return coverage_in_arguments(pod) if pod is not None else None

    async def _observe_where_allowed(self, cause: Forbidden) -> list[JSON]:
        """The Leases of the namespaces we cover and our own, which are all that a namespaced installation may read."""
        leases, hidden = [], []
        for namespace in sorted(self._ours.covers.namespaces | {self._ours.namespace}):
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
