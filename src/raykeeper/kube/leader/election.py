"""One leader among replicas: waits for the Lease, runs the work under it, stops it when the Lease is not certain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from raykeeper.api.meta import ObjectKey
from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.leader.fence import LeaseFence
from raykeeper.kube.leader.lease import JITTER, Candidate, ElectionSettings, LeasePlan, Wait
from raykeeper.kube.leader.leaseclient import LeadershipLost, LeaseClient
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log

log = Log("raykeeper.kube.election")

# Its own rate budget and connections: a renewal must not queue behind the writes it protects. Four times the requests
# that one replica needs, and a second connection for the try after one that hangs.
ELECTION_QPS, ELECTION_BURST, ELECTION_CONNECTIONS = 4.0, 10, 2
STOP_SECONDS = 8.0  # for the work to end after the lease is lost; its writes are withheld meanwhile anyway
RELEASE_SECONDS = 1.5  # the lease runs out by itself where this is not enough


class LeaderElector:
    """A candidate for one Lease. `fence` is open only while this process may write."""

    def __init__(
        self,
        kube: Kube,
        key: ObjectKey,
        identity: str,
        *,
        clock: Clock,
        metrics: KubeMetrics,
        settings: ElectionSettings | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings or ElectionSettings()
        self.fence = LeaseFence(clock, metrics)
        self._lease = LeaseClient(
            kube.with_budget(ELECTION_QPS, ELECTION_BURST, connections=ELECTION_CONNECTIONS),
            key,
            Candidate(identity, self.settings.lease_duration, annotations or {}),
            self.fence,
            clock,
            self.settings.fence_deadline,
            metrics.slow_renewals.labels(name=key.name).inc,
        )
        self._key = key
        self._clock = clock
        self._leading = metrics.leading.labels(name=key.name)
        self._leading.set(0)
        self._pause = Backoff(self.settings.retry_period, self.settings.retry_period, jitter=JITTER)
        self._log = log.bind(lease=str(key), identity=identity)
        self._trouble = ""
        self._awaited_holder = ""
        self._is_stuck = False

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `lead` under it, give the lease back. Raises what `lead` raises.

        Raises LeadershipLost, with `lead` cancelled, when the lease was not renewed in time or is another's. To stand
        by and lead once more takes a new elector: a fence that closed never opens again.
        When this is cancelled, `lead` is cancelled first and the lease is renewed until `lead` has ended.
        """
        lost = False
        try:
            await self._acquire()
            self._leading.set(1)
            self._log.info("leading")
            await self._lead(lead)
        except LeadershipLost as exc:
            lost, exc.is_stuck = True, self._is_stuck
            raise
        finally:
            self.fence.close()
            self._leading.set(0)
            if not lost:
                await self._release()

    async def _acquire(self) -> None:
        while True:
            plan = await self._try()
            if self.fence.is_open:
                return
            pause = self._pause.delay(1)
            if isinstance(plan, Wait):
                self._tell_holder(plan.holder)
                pause = min(pause, max(0.0, plan.until - self._clock.steady()))
            await asyncio.sleep(pause)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.create_task(_await(lead))
        renewal = asyncio.create_task(self._renew_until_lost())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            raise
        finally:
            if renewal.done():
                self.fence.close()
            await self._end(work, renewal)
        if not renewal.cancelled():
            renewal.result()
        self._result(work)

    async def _renew_until_lost(self) -> None:
        while True:
            await asyncio.sleep(min(self._pause.delay(1), max(0.0, self.fence.remaining)))
            if not self.fence.is_open:
                raise self._lost()
            await self._try()

    async def _try(self) -> LeasePlan | None:
        """One try to get or keep the lease: what was decided, or None when it failed."""
        # Half of the deadline: a request that hangs leaves time for another over a new connection.
        limit = self.settings.renew_deadline / 2
        try:
            async with asyncio.timeout(min(limit, self.fence.remaining) if self.fence.is_open else limit):
                plan = await self._lease.get_or_keep()
        except (ApiError, Unavailable, TimeoutError) as exc:
            self._failed(str(exc) or "the API server did not answer in time")
            return None
        self._trouble = ""
        return plan

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                if await self._lease.release():
                    self._log.info("lease released")
        except (ApiError, Unavailable, TimeoutError) as exc:
            self._log.warning("lease not released, it will run out", cause=str(exc) or "no answer in time")

    async def _end(self, work: asyncio.Task[None], renewal: asyncio.Task[None]) -> None:
        """Cancel what still runs and wait for it. What the work raises because it is stopped is only logged."""
        work.cancel()
        renewal.cancel()
        _, running = await asyncio.wait({work, renewal}, timeout=STOP_SECONDS)
        if work in running:
            self._is_stuck = True
            self._log.error("work did not stop, its writes are withheld", seconds=STOP_SECONDS)
        elif work.cancelling() and not work.cancelled() and (failure := work.exception()):
            self._log.error("work failed while it was stopped", cause=repr(failure))

    def _result(self, work: asyncio.Task[None]) -> None:
        """Raise what the work raised, which is a withheld write if the lease ran out before the renewal noticed."""
        failure = work.exception()
        if failure is not None and not self.fence.is_open:
            raise self._lost() from failure
        work.result()

    def _lost(self) -> LeadershipLost:
        cause = self._trouble or "this process was paused or too busy"
        return LeadershipLost(f"lease {self._key} was not renewed within {self.settings.renew_deadline:g} s: {cause}")

    def _failed(self, cause: str) -> None:
        if cause != self._trouble:
            self._log.warning("lease not renewed" if self.fence.is_open else "lease not acquired", cause=cause)
        self._trouble = cause

    def _tell_holder(self, holder: str) -> None:
        if holder != self._awaited_holder:
            self._log.info("waiting for the lease", holder=holder)
        self._awaited_holder = holder


async def _await(lead: Callable[[], Awaitable[None]]) -> None:
    await lead()
