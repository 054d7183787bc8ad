"""One candidate's dealings with one Lease: reads it, writes what the plan says, and moves the fence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.kube.leader.fence import LeaseFence
from raykeeper.kube.leader.lease import (
    Candidate,
    Create,
    LeasePlan,
    Sighting,
    Wait,
    desired_lease,
    plan_lease,
    released_lease,
    sighted,
)
from raykeeper.kube.resources import LEASES


class LeadershipLost(RaykeeperError):
    """The lease could not be kept. The work under it has been stopped, unless `is_stuck`; its fence stays closed."""

    is_stuck = False


class LeaseStore(Protocol):
    """The three calls of `Kube` that a Lease needs (RBAC: get, create, update, which KubeRay's chart grants)."""

    async def find(self, resource: Resource[JSON], key: ObjectKey) -> JSON | None: ...

    async def create(self, resource: Resource[JSON], body: JSON, namespace: str) -> JSON: ...

    async def replace(self, resource: Resource[JSON], body: JSON) -> JSON: ...


class LeaseClient:
    """Gets, keeps and gives back the Lease `key`. One call at a time; every call may be cancelled at any point."""

    def __init__(
        self,
        kube: LeaseStore,
        key: ObjectKey,
        candidate: Candidate,
        fence: LeaseFence,
        clock: Clock,
        fence_deadline: Callable[[float], float],
        on_slow_path: Callable[[], None] = lambda: None,
    ) -> None:
        self._kube = kube
        self._key = key
        self._candidate = candidate
        self._fence = fence
        self._clock = clock
        self._fence_deadline = fence_deadline
        self._on_slow_path = on_slow_path
        self._sighting: Sighting | None = None
        # Whether the sighting is our own last write: then a renewal needs no read before it.
        self._is_fresh = False
        # A write whose answer never came may have made us the holder, too.
        self._may_hold = False

    async def get_or_keep(self) -> LeasePlan:
        """Create, renew or take the lease where that is allowed now, and say which; the fence is open if it is ours.

        Raises LeadershipLost when we were leading and find it with another.
        """
        if not self._is_fresh:
            if self._fence.is_open:
                self._on_slow_path()
            await self._read()
        plan = plan_lease(self._sighting, self._candidate, self._clock.steady())
        if self._fence.is_open and not self._is_mine():
            self._may_hold = False
            raise LeadershipLost(f"lease {self._key} was taken from us, it is held by {self._holder() or 'nobody'}")
        if not isinstance(plan, Wait):
            await self._write(is_new=isinstance(plan, Create))
        return plan

    async def release(self) -> bool:
        """Empty the holder if it is us, so that the next leader need not wait; False if it was not us."""
        if not self._may_hold:
            return False
        body = await self._read()
        if body is None or not self._is_mine():
            return False
        await self._kube.replace(LEASES, released_lease(body, self._clock.now()))
        self._may_hold = False
        return True

    async def _read(self) -> JSON | None:
        body = await self._kube.find(LEASES, self._key)
        self._sighting = sighted(self._sighting, body, self._clock.steady())
        return body

    async def _write(self, *, is_new: bool) -> None:
        self._is_fresh, self._may_hold = False, True
        lease = desired_lease(self._key, self._sighting, self._candidate, self._clock.now())
        # Before it waits for the rate limit or a connection: too early is safe, too late is not.
        sent_at = self._clock.steady()
        if is_new:
            written = await self._kube.create(LEASES, lease, self._key.namespace)
        else:
            written = await self._kube.replace(LEASES, lease)
        self._sighting = sighted(self._sighting, written, self._clock.steady())
        self._is_fresh = True
        self._fence.extend(self._fence_deadline(sent_at))

    def _holder(self) -> str:
        return self._sighting.record.holder if self._sighting else ""

    def _is_mine(self) -> bool:
        return self._holder() == self._candidate.identity
