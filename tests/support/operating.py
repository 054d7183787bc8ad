"""An operator inside the test: the real controllers on a real API server, in one namespace, without election."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import TypedDict, Unpack

from prometheus_client import CollectorRegistry

from raykeeper.api.meta import ObjectKey
from raykeeper.clock import Clock, SystemClock
from raykeeper.kube.client import Kube
from raykeeper.kube.controllers.controller import Controller, ControllerSettings, Reconcile
from raykeeper.kube.controllers.failures import chief_cause
from raykeeper.kube.controllers.queue import WorkQueue
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.events.writer import EventWriter
from raykeeper.kube.http.fencedbody import Fence
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.context import Context
from raykeeper.operator.controllers import CONTROLLERS
from raykeeper.operator.rayhead.client import Heads
from raykeeper.operator.rayhead.poller import HeadPoller
from raykeeper.operator.rayhead.token import Tokens
from raykeeper.operator.schedulers.choice import scheduler_named
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.watches import Informers, Scope
from support.kube_clients import connected
from support.ray_jobs_head import HeadsAt

KUBERNETES = ApiServerFacts((1, 36), is_openshift=False)
"""The bed's API server."""


@dataclass(frozen=True)
class Circumstances:
    """What an operator is given; a test changes what it is about."""

    settings: OperatorSettings = field(default_factory=OperatorSettings)
    fence: Fence | None = None
    """Asked before each write."""
    clock: Clock = field(default_factory=SystemClock)
    api_server: ApiServerFacts = KUBERNETES
    heads_at: str | Callable[[str], str] = ""
    """URL of the one head that all clusters have, or of the head of each by its name; empty: each has its own."""


class Given(TypedDict, total=False):
    """Those of the circumstances that a test names."""

    settings: OperatorSettings
    fence: Fence
    clock: Clock
    api_server: ApiServerFacts
    heads_at: str | Callable[[str], str]


def with_scheduler(name: str) -> Given:
    """Where this batch scheduler is used, and the API server knows its kinds."""
    kinds = frozenset(scheduler_named(name).kinds)
    return Given(settings=OperatorSettings(batch_scheduler=name), api_server=replace(KUBERNETES, scheduler_kinds=kinds))


class Operator:
    """One run of all controllers over some namespaces."""

    def __init__(
        self,
        kube: Kube,
        namespaces: Sequence[str],
        given: Circumstances,
        each: Mapping[str, Circumstances] | None = None,
    ) -> None:
        """`each` has the circumstances of every single namespace, where they differ."""
        self.metrics = _metrics()
        clock = given.clock
        self.informers = Informers(kube, namespaces, self.metrics, clock, Scope(is_wide=each is not None))
        self._events = EventWriter(kube, "test", clock=clock, metrics=self.metrics)
        self._polls = HeadPoller(clock)
        contexts = {"": self._context(kube, given, self.metrics)}
        if each is not None:
            contexts = {name: self._context(kube, one, _metrics()) for name, one in each.items()}
        self.controllers = []
        for row in CONTROLLERS:
            queue: WorkQueue[ObjectKey] = WorkQueue(row.name, self.metrics, clock, namespace_of=attrgetter("namespace"))
            reconciles = {name: row.make(context) for name, context in contexts.items()}
            reconcile = _of_each(reconciles) if each else reconciles[""]
            self._polls.on_change(row.reconciles.kind, queue.add)
            for watch in row.watches_in(given.api_server):
                self.informers.of(watch.kind).on_change(watch.handler(queue.add_after))
            limits = ControllerSettings(shutdown_seconds=1)
            self.controllers.append(Controller(row.name, reconcile, queue, self.metrics, clock, limits))

    def _context(self, kube: Kube, given: Circumstances, metrics: KubeMetrics) -> Context:
        fenced = kube if given.fence is None else kube.with_fence(given.fence)
        return Context(
            kube=fenced,
            informers=self.informers,
            recorder=self._events.recorder,
            settings=given.settings,
            api_server=given.api_server,
            metrics=metrics,
            clock=given.clock,
            scheduler=scheduler_named(given.settings.batch_scheduler),
            heads=_heads(fenced, given),
            polls=self._polls,
        )

    async def run(self) -> None:
        """Work until cancelled, or until the fence closes."""
        async with asyncio.TaskGroup() as group:
            informers = group.create_task(self.informers.run())
            events = group.create_task(self._events.run())
            polls = group.create_task(self._polls.run())
            await self.informers.wait_synced()
            await asyncio.gather(*(controller.run() for controller in self.controllers))
            for task in (informers, events, polls):
                task.cancel()


def _metrics() -> KubeMetrics:
    return KubeMetrics(CollectorRegistry())


def _of_each(reconciles: Mapping[str, Reconcile[ObjectKey]]) -> Reconcile[ObjectKey]:
    """A namespace whose fence has closed is looked at no more, as if its operator had died; the others go on."""
    dead: set[str] = set()

    async def reconcile(key: ObjectKey) -> Requeue:
        if key.namespace in dead:
            return Requeue.never()
        try:
            return await reconciles[key.namespace](key)
        except Exception as error:
            if not isinstance(chief_cause(error), NotLeading):
                raise
            dead.add(key.namespace)
            return Requeue.never()

    return reconcile


def _heads(kube: Kube, given: Circumstances) -> Heads:
    if at := given.heads_at:
        url_of = (lambda _: at) if isinstance(at, str) else at
        return HeadsAt(kube, Tokens(kube, given.clock), is_proxied=False, url_of=url_of)
    return Heads.by(kube, given.clock, is_proxied=given.settings.client.use_kubernetes_proxy)


class ClockAhead(SystemClock):
    """A clock that is ahead of the API server's, so that a test need not wait until something is overdue."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead

    def advance(self, by: timedelta) -> None:
        """Let it be so much later at once."""
        self._ahead += by


@contextlib.asynccontextmanager
async def operating(kubeconfig: Path, *namespaces: str, **given: Unpack[Given]) -> AsyncIterator[Operator]:
    """Run an operator beside the test, in the circumstances that are given."""
    async with connected(kubeconfig) as kube, _running(Operator(kube, namespaces, Circumstances(**given))) as operator:
        yield operator


@contextlib.asynccontextmanager
async def operating_each(
    kubeconfig: Path, each: Mapping[str, Given], **given: Unpack[Given]
) -> AsyncIterator[Operator]:
    """Run one operator over many namespaces, each of which has some circumstances of its own."""
    own = {name: Circumstances(**(given | one)) for name, one in each.items()}
    async with connected(kubeconfig) as kube:
        operator = Operator(kube, tuple(each), Circumstances(**given), own)
        async with _running(operator):
            yield operator


@contextlib.asynccontextmanager
async def _running(operator: Operator) -> AsyncIterator[Operator]:
    task = asyncio.create_task(operator.run())
    try:
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
