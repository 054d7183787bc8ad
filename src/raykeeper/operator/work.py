"""What the operator does once it may start: fill the caches, then one term of leading after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from raykeeper.errors import Unavailable
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.controllers import ControllerRow
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS, WATCHED_RAYJOBS, WATCHED_RAYSERVICES
from raykeeper.operator.metrics import RayClusterCollector
from raykeeper.operator.program import Program
from raykeeper.operator.rayjob.metrics import RayJobCollector
from raykeeper.operator.rayservice.metrics import RayServiceCollector
from raykeeper.operator.term import Term
from raykeeper.operator.watches import Informers, Scope

SYNC_SECONDS = 120.0  # the time KubeRay's operator gives its caches to fill; after that someone must act


class Work:
    """The caches, and the terms of leading over them. Made and run once.

    Caches fill before the election and go on between terms: a replica that takes over knows everything already.
    """

    def __init__(
        self,
        program: Program,
        api_server: ApiServerFacts,
        rows: Sequence[ControllerRow],
        lookout: Lookout,
        scope: Scope,
    ) -> None:
        self._program = program
        self._api_server = api_server
        self._rows = rows
        self._lookout = lookout
        covers = program.settings.leadership.covers
        self._informers = Informers(program.kube, covers.namespaces, program.metrics, program.clock, scope)
        self._term = self._new_term()  # the controllers say which caches they need
        program.serving.ready.add("caches", self._informers.problem)
        if program.settings.has_object_metrics:
            clusters = self._informers.cache(WATCHED_RAYCLUSTERS)
            jobs = self._informers.cache(WATCHED_RAYJOBS)
            program.metrics.registry.register(RayClusterCollector(clusters))
            program.metrics.registry.register(RayJobCollector(jobs, lambda key: clusters.get(key) is not None))
            services = self._informers.cache(WATCHED_RAYSERVICES)
            program.metrics.registry.register(RayServiceCollector(services))

    async def run(self) -> None:
        """Work until cancelled. Raises when that is not possible any more; the process must then end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informers")
            await self._wait_synced()
            while True:
                await self._term.run(self._lookout)
                self._term = self._new_term()
                # What the old one saw of other installations is as old as the last term.
                self._lookout = Lookout(self._program.kube, self._program.ours, self._program.clock)

    def _new_term(self) -> Term:
        return Term(self._program, self._api_server, self._rows, self._informers)

    async def _wait_synced(self) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._informers.wait_synced()
        except TimeoutError as exc:
            cause = f"caches are not filled after {SYNC_SECONDS:g} s: {self._informers.problem()}"
            raise Unavailable("kubernetes API", cause) from exc
