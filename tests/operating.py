"""An operator inside the test: the real controllers on a real API server, in one namespace, without election."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from prometheus_client import CollectorRegistry

from kube_clients import connected
from raykeeper.api.meta import ObjectKey
from raykeeper.clock import Clock, SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.controllers.controller import Controller, ControllerSettings
from raykeeper.kube.controllers.queue import WorkQueue
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.http.fencedbody import Fence
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator.context import Context
from raykeeper.operator.controllers import CONTROLLERS
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.surroundings import Surroundings
from raykeeper.operator.watches import Informers

KUBERNETES = Surroundings((1, 36), is_openshift=False)
"""The bed's API server."""


@dataclass(frozen=True)
class Circumstances:
    """What an operator is given; a test changes what it is about."""

    settings: OperatorSettings = field(default_factory=OperatorSettings)
    fence: Fence | None = None
    """Asked before each write."""
    clock: Clock = field(default_factory=SystemClock)
    surroundings: Surroundings = KUBERNETES


class Given(TypedDict, total=False):
    """Those of the circumstances that a test names."""

    settings: OperatorSettings
    fence: Fence
    clock: Clock
    surroundings: Surroundings


class Operator:
    """One run of all controllers over one namespace."""

    def __init__(self, kube: Kube, namespaces: Sequence[str], given: Circumstances) -> None:
        self.metrics = KubeMetrics(CollectorRegistry())
        clock = given.clock
        fenced = kube if given.fence is None else kube.with_fence(given.fence)
        self.informers = Informers(kube, namespaces, self.metrics, clock)
        self._events = EventWriter(kube, "test", clock=clock, metrics=self.metrics)
        context = Context(
            kube=fenced,
            informers=self.informers,
            recorder=self._events.recorder,
            settings=given.settings,
            surroundings=given.surroundings,
            metrics=self.metrics,
            clock=clock,
        )
        self.controllers = []
        for row in CONTROLLERS:
            queue: WorkQueue[ObjectKey] = WorkQueue(row.name, self.metrics, clock)
            reconcile = row.make(context)
            for watch in row.watches_in(given.surroundings):
                self.informers.of(watch.kind).on_change(watch.handler(queue.add_after))
            limits = ControllerSettings(shutdown_seconds=1)
            self.controllers.append(Controller(row.name, reconcile, queue, self.metrics, clock, limits))

    async def run(self) -> None:
        """Work until cancelled, or until the fence closes."""
        async with asyncio.TaskGroup() as group:
            informers = group.create_task(self.informers.run())
            events = group.create_task(self._events.run())
            await self.informers.wait_synced()
            for controller in self.controllers:
                await controller.run()
            informers.cancel()
            events.cancel()


class ClockAhead(SystemClock):
    """A clock that is ahead of the API server's, so that a test need not wait until something is overdue."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


@contextlib.asynccontextmanager
async def operating(kubeconfig: Path, *namespaces: str, **given: Unpack[Given]) -> AsyncIterator[Operator]:
    """Run an operator beside the test, in the circumstances that are given."""
    async with connected(kubeconfig) as kube:
        operator = Operator(kube, namespaces, Circumstances(**given))
        task = asyncio.create_task(operator.run())
        try:
            yield operator
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
