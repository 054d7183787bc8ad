"""One term of leading, from waiting for the lease to losing it: its write fence, its Events, its controllers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from importlib.metadata import version
from operator import attrgetter

from raykeeper.api.meta import ObjectKey
from raykeeper.kube.controllers.controller import Controller, ControllerSettings
from raykeeper.kube.controllers.queue import Priority, WorkQueue
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.leader.election import LeaderElector
from raykeeper.kube.leader.installations import LEASE_NAME, lease_annotations
from raykeeper.kube.leader.leaseclient import LeadershipLost
from raykeeper.kube.leader.lookout import Lookout
from raykeeper.logs import Log
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.context import Context
from raykeeper.operator.controllers import ControllerRow
from raykeeper.operator.program import Program
from raykeeper.operator.rayhead.client import Heads
from raykeeper.operator.rayhead.poller import HeadPoller
from raykeeper.operator.schedulers.choice import scheduler_named
from raykeeper.operator.watches import Informers

# KubeRay's chart gives the pod 10 s to end: these for running reconciles, 1 to cancel one that hangs, 1.5 for Events,
# 1.5 for the lease, 1 for the listeners.
SHUTDOWN_SECONDS = 3.0

log = Log("raykeeper.operator")


class Term:
    """Controllers that have never worked before, and the lease they need for it. Run once.

    What a reconciler remembers (pods it expects to see, statuses it wrote) is of its term: the next one starts from the
    caches alone, as another replica would.
    """

    def __init__(
        self, program: Program, api_server: ApiServerFacts, rows: Sequence[ControllerRow], informers: Informers
    ) -> None:
        self._program = program
        self._informers = informers
        self._elector = _elector(program) if program.settings.leadership.is_elected else None
        kube = program.kube if self._elector is None else program.kube.with_fence(self._elector.fence)
        self._events = EventWriter(kube, socket.gethostname(), clock=program.clock, metrics=program.metrics)
        is_proxied = program.settings.client.use_kubernetes_proxy
        self._context = Context(
            kube=kube,
            informers=informers,
            recorder=self._events.recorder,
            settings=program.settings,
            api_server=api_server,
            metrics=program.metrics,
            clock=program.clock,
            scheduler=scheduler_named(program.settings.batch_scheduler),
            heads=Heads.by(kube, program.clock, is_proxied=is_proxied),
            polls=HeadPoller(program.clock, is_proxied=is_proxied),
        )
        informers.drop_handlers()
        self._controllers = {row: self._controller(row) for row in rows}
        for controller in self._controllers.values():
            program.serving.live.add(controller.name, controller.problem)

    async def run(self, lookout: Lookout) -> None:
        """Wait for the lease and work under it until it is lost. Raises what makes it impossible to go on."""
        if self._elector is None:
            await self._lead(lookout)
            return
        try:
            await self._elector.run(lambda: self._lead(lookout))
        except LeadershipLost as exc:
            if exc.is_stuck:
                raise
            log.warning("leadership lost, standing by", cause=str(exc))

    def _controller(self, row: ControllerRow) -> Controller[ObjectKey]:
        program = self._program
        queue: WorkQueue[ObjectKey] = WorkQueue(
            row.name,
            program.metrics,
            program.clock,
            workers=program.settings.reconcile_concurrency,
            namespace_of=attrgetter("namespace"),
        )
        reconcile = row.make(self._context)
        for watch in row.watches_in(self._context.api_server):
            self._informers.of(watch.kind)  # so that its cache is filled before the first reconcile
        settings = ControllerSettings(shutdown_seconds=SHUTDOWN_SECONDS)
        return Controller(row.name, reconcile, queue, program.metrics, program.clock, settings)

    async def _lead(self, lookout: Lookout) -> None:
        """Work as the only replica. Events end last, so that what the last reconciles report is written too."""
        await lookout.ensure_alone()
        for row, controller in self._controllers.items():
            self._begin(row, controller.queue)
        async with asyncio.TaskGroup() as group:
            events = group.create_task(self._events.run(), name="events")
            try:
                await self._run_controllers()
            finally:
                events.cancel()

    def _begin(self, row: ControllerRow, queue: WorkQueue[ObjectKey]) -> None:
        """React to changes from now on, and look at every object once, behind those to which something happens.

        Not before: the queue of a standby would be as long as there are objects, and as old as the standby.
        """
        self._context.polls.on_change(row.reconciles.kind, lambda key: queue.add(key, Priority.HIGH))
        for watch in row.watches_in(self._context.api_server):
            informer = self._informers.of(watch.kind)
            informer.on_change(watch.handler(queue.add_after))
            if str(watch.kind.resource) == str(row.reconciles):
                for item in informer.cache:
                    queue.add(item.key, Priority.LOW)

    async def _run_controllers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers.values():
                group.create_task(_run_for_ever(controller), name=controller.name)
            group.create_task(self._context.polls.run(), name="questions to Ray heads")
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
        settings=program.settings.leadership.election,
        annotations=lease_annotations(ours.covers, ours.identity, version("raykeeper"), socket.gethostname()),
    )
