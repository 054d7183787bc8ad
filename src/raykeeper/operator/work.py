"""What the operator does once it may start: fill the caches, be elected, and let the controllers work."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from importlib.metadata import version

from raykeeper.api.meta import ObjectKey
from raykeeper.errors import Unavailable
from raykeeper.kube.controllers.controller import Controller, ControllerSettings
from raykeeper.kube.controllers.queue import WorkQueue
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.installations import LEASE_NAME, lease_annotations
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.operator.context import Context
from raykeeper.operator.controllers import ControllerRow
from raykeeper.operator.kinds import WATCHED_RAYCLUSTERS
from raykeeper.operator.metrics import RayClusterCollector
from raykeeper.operator.program import Program
from raykeeper.operator.surroundings import Surroundings
from raykeeper.operator.watches import Informers

SYNC_SECONDS = 120.0  # the time KubeRay's operator gives its caches to fill; after that someone must act
# KubeRay's Deployment gives the pod 10 s to end: these, 2 for a reconcile that hangs, 3 for Events, 1 for the lease.
SHUTDOWN_SECONDS = 4.0


class Work:
    """The controllers and all they need. Made and run once.

    Caches fill before the election, so that a replica which takes over knows everything already.
    """

    def __init__(
        self, program: Program, surroundings: Surroundings, rows: Sequence[ControllerRow], lookout: Lookout
    ) -> None:
        self._program = program
        self._lookout = lookout
        self._elector = _elector(program) if program.settings.leadership.is_elected else None
        kube = program.kube if self._elector is None else program.kube.with_fence(self._elector.fence)
        clock, metrics = program.clock, program.metrics
        covers = program.settings.leadership.covers
        self._informers = Informers(program.kube, covers.namespaces, metrics, clock)
        self._events = EventWriter(kube, socket.gethostname(), clock=clock, metrics=metrics)
        self._context = Context(
            kube=kube,
            informers=self._informers,
            recorder=self._events.recorder,
            settings=program.settings,
            surroundings=surroundings,
            metrics=metrics,
            clock=clock,
        )
        self._controllers = [self._controller(row) for row in rows]
        self._show()

    async def run(self) -> None:
        """Work until cancelled. Raises when that is not possible any more; the process must then end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informers")
            await self._wait_synced()
            if self._elector is None:
                await self._lead()
            else:
                await self._elector.run(self._lead)

    def _controller(self, row: ControllerRow) -> Controller[ObjectKey]:
        program = self._program
        queue: WorkQueue[ObjectKey] = WorkQueue(row.name, program.metrics, program.clock)
        reconcile = row.make(self._context)
        for watch in row.watches_in(self._context.surroundings):
            self._informers.of(watch.kind).on_change(watch.handler(queue.add_after))
        settings = ControllerSettings(workers=program.settings.reconcile_concurrency, shutdown_seconds=SHUTDOWN_SECONDS)
        return Controller(row.name, reconcile, queue, program.metrics, program.clock, settings)

    def _show(self) -> None:
        """Let probes and metrics tell of this work."""
        program = self._program
        program.serving.ready.add("caches", self._informers.problem)
        for controller in self._controllers:
            program.serving.live.add(controller.name, controller.problem)
        if program.settings.has_object_metrics:
            program.metrics.registry.register(RayClusterCollector(self._informers.cache(WATCHED_RAYCLUSTERS)))

    async def _wait_synced(self) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._informers.wait_synced()
        except TimeoutError as exc:
            cause = f"caches are not filled after {SYNC_SECONDS:g} s: {self._informers.problem()}"
            raise Unavailable("kubernetes API", cause) from exc

    async def _lead(self) -> None:
        """Work as the only replica. Events end last, so that what the last reconciles report is written too."""
        await self._lookout.ensure_alone()
        async with asyncio.TaskGroup() as group:
            events = group.create_task(self._events.run(), name="events")
            try:
                await self._run_controllers()
            finally:
                events.cancel()

    async def _run_controllers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(_run_for_ever(controller), name=controller.name)
            # Ends when it is cancelled, or when a controller ends.
            await asyncio.get_running_loop().create_future()


async def _run_for_ever(controller: Controller[ObjectKey]) -> None:
    await controller.run()
    raise NotLeading(f"{controller.name} stopped, since the leader lease may be another's by now")


def _elector(program: Program) -> LeaderElector:
    ours = program.ours
    return LeaderElector(
        program.kube,
        ObjectKey(ours.namespace, LEASE_NAME),
        ours.identity,
        clock=program.clock,
        metrics=program.metrics,
        annotations=lease_annotations(ours.covers, ours.identity, version("raykeeper"), socket.gethostname()),
    )
