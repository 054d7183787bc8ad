"""Workers that take keys from a queue and reconcile them, for ever, whatever one of them meets."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from raykeeper.clock import Clock
from raykeeper.kube.controllers.failures import Failures, Kind, chief_cause, kind_of, retry_after
from raykeeper.kube.controllers.queue import Priority, QueueShutDown, WorkQueue
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log

K = TypeVar("K", bound=Hashable)

Reconcile = Callable[[K], Awaitable[Requeue]]
"""Moves one object towards its spec; safe at any time, any number of times, after any crash."""

OUTAGE_RETRY_SECONDS = 30.0
"""That a webhook is back is no event that we see: whoever waited for it, however long, goes on within this time."""
CANCEL_SECONDS = 1.0  # how long a cancelled reconcile may take to clean up before it counts as stuck


@dataclass(frozen=True)
class ControllerSettings:
    """How patient a controller is."""

    deadline_seconds: float | None = 600.0
    """A reconcile that takes longer is cancelled, reported and retried; None lets it hang for ever."""
    shutdown_seconds: float = 20.0
    """Running reconciles get this long to finish at shutdown; the kubelet kills the pod after 30."""


class ReconcileHung(Exception):
    """A reconcile did not end before its deadline and was cancelled."""


class StrayCancellation(Exception):
    """A reconcile ended as cancelled though nobody had cancelled it: something it waited for was."""


class Controller(Generic[K]):
    """Keeps calling `reconcile` for the keys of a queue.

    Guarantees: a failure of one key, of whatever kind, delays only that key.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        queue: WorkQueue[K],
        metrics: KubeMetrics,
        clock: Clock,
        settings: ControllerSettings | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._settings = settings or ControllerSettings()
        self._failures: Failures[K] = Failures(clock)
        self._workers: list[asyncio.Task[None]] = []
        self._log = Log("raykeeper.kube.controller", controller=name)
        self._metrics = metrics
        metrics.show_controller(name, queue.passes.workers)
        self._active = metrics.active_workers.labels(name)
        self._seconds = metrics.reconcile_seconds.labels(name)

    async def run(self) -> None:
        """Work until cancelled, or until a write was withheld because we may no longer lead."""
        numbers = range(self.queue.passes.places)  # who works how long is for the queue to say
        self._workers = [asyncio.create_task(self._work(), name=f"{self.name} worker {n}") for n in numbers]
        try:
            await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self.queue.shut_down()
            await self._end_workers()
        for worker in self._workers:
            if worker.done() and not worker.cancelled():
                worker.result()  # raises what ended the worker, if anything did

    def problem(self) -> str | None:
        """Why this controller does not do its work, for a liveness check; None while it does or was not started."""
        if any(worker.done() for worker in self._workers):
            return f"a worker of controller {self.name} has ended"
        limit = self._settings.deadline_seconds
        if limit is not None and self.queue.longest_running_seconds() > limit + CANCEL_SECONDS:
            return f"a reconcile of controller {self.name} goes on though it was cancelled after {limit:g} s"
        return None

    async def _end_workers(self) -> None:
        try:
            await asyncio.wait(self._workers, timeout=self._settings.shutdown_seconds)
        finally:  # also when we are cancelled a second time while waiting
            late = [worker for worker in self._workers if not worker.done()]
            for worker in late:
                worker.cancel()
            if late:
                self._log.warning("running reconciles were cut off at shutdown", count=len(late))
                await asyncio.wait(late, timeout=CANCEL_SECONDS)

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                with self._active.track_inprogress(), self._seconds.time():
                    await self._handle(key)
            finally:
                self.queue.done(key)

    async def _handle(self, key: K) -> None:
        """Reconcile one key and decide when it comes next."""
        try:
            requeue = await self._reconcile_in_time(key)
        except Exception as error:
            self._count(self._failed(key, error))
        else:
            self._count(self._succeeded(key, requeue))

    async def _reconcile_in_time(self, key: K) -> Requeue:
        limit = self._settings.deadline_seconds
        try:
            async with asyncio.timeout(limit) as deadline:
                return await self._reconcile(key)
        except TimeoutError as exc:
            if deadline.expired():
                raise ReconcileHung(f"reconcile of {key} was cancelled after {limit:g} s") from exc
            raise
        except asyncio.CancelledError as exc:
            if _is_being_cancelled():
                raise
            raise StrayCancellation(f"reconcile of {key} was cancelled from within") from exc

    def _succeeded(self, key: K, requeue: Requeue) -> str:
        if self._failures.is_over(key):
            self._log.info("reconcile succeeds again", key=str(key))
        delay = requeue.delay(self._clock.now())
        if delay == 0:
            self.queue.add_rate_limited(key)
            return "requeue"
        self.queue.forget(key)
        if delay is None:
            return "success"
        self.queue.add_after(key, delay, Priority.LOW if requeue.is_routine else self.queue.priority_of(key))
        return "requeue_after"

    def _failed(self, key: K, error: Exception) -> str:
        cause = chief_cause(error)
        kind = kind_of(cause)
        if kind is Kind.NOT_LEADING:
            self._log.debug("controller stops: not leading any more", key=str(key), error=str(cause))
            self.queue.shut_down()
            return "error"
        self._tell(key, cause, kind)
        self._metrics.reconcile_errors.labels(self.name).inc()
        if kind is Kind.BUG:
            self._metrics.reconcile_panics.labels(self.name).inc()
        if kind is Kind.INVALID:
            self._metrics.terminal_errors.labels(self.name).inc()
            self.queue.forget(key)
        else:
            longest = OUTAGE_RETRY_SECONDS if kind is Kind.PASSING else math.inf
            self.queue.add_rate_limited(key, at_least=retry_after(error), at_most=longest)
        return "error"

    def _tell(self, key: K, cause: Exception, kind: Kind) -> None:
        """Write one line about a failure, at the level it deserves; called while it is being handled."""
        fields = {"key": str(key), "error": str(cause), "failures": self.queue.failures(key) + 1}
        if not self._failures.is_news(key, cause):
            self._log.debug("reconcile failed again", **fields)
        elif kind is Kind.BUG:
            self._log.exception("reconcile failed by a bug", **fields)
        elif kind is Kind.INVALID:
            self._log.warning("object is invalid and left alone until it changes", **fields)
        elif kind is Kind.PASSING:
            self._log.warning("reconcile keeps failing", **fields)
        else:
            self._log.warning("reconcile was refused", **fields)

    def _count(self, result: str) -> None:
        self._metrics.reconciles.labels(self.name, result).inc()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
