"""The Lease a leader holds, as data, and the decision what one candidate may do with it now. Pure.

On the wire it is what client-go writes, so KubeRay's operator and ours take over from each other. What we do not know
in a Lease (other annotations, newer fields) is written back as it was read.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.errors import Misconfigured
from raykeeper.kube.microtime import parse_micro_time, to_micro_time

JITTER = 0.2  # of the retry period: replicas that failed together must not come back together


@dataclass(frozen=True)
class ElectionSettings:
    """How long a lease lasts and how hard it is held; the defaults are those of KubeRay's operator."""

    lease_duration: int = 15
    """Seconds another candidate waits after the last renewal it saw. Whole seconds, as the Lease has them."""
    renew_deadline: float = 10.0
    """Seconds after which a leader that could not renew stops."""
    retry_period: float = 2.0
    """Seconds between two tries to get or renew the lease."""

    def __post_init__(self) -> None:
        if not self.renew_deadline < self.lease_duration:
            cure = f"it must be below the lease duration, {self.lease_duration} s"
            raise Misconfigured("renew deadline", self.renew_deadline, cure)
        if not 0 < self.retry_period * (1 + JITTER) < self.renew_deadline:
            cure = f"it must be well below the renew deadline, {self.renew_deadline:g} s"
            raise Misconfigured("retry period", self.retry_period, cure)

    def fence_deadline(self, sent_at: float) -> float:
        """Until when a renewal sent at `sent_at` lets us write, however late its answer came.

        Others wait `lease_duration` from a moment after `sent_at`, when they saw the renewal. The difference, 5 of 15
        seconds by default, covers clocks that run at different rates (NTP slews by at most 0.05 %, so two clocks drift
        apart by 15 ms in a lease) and the way to the server of a write that left just before the deadline.
        """
        return sent_at + self.renew_deadline


@dataclass(frozen=True)
class LeaseRecord:
    """What a Lease says; the two times come from its holder's wall clock and are never compared with ours here."""

    holder: str = ""
    duration_seconds: int | None = None
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0


@dataclass(frozen=True)
class Candidate:
    """Who wants the lease, for how long at a time, and what it tells others about itself through annotations."""

    identity: str
    lease_duration: int = 15
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sighting:
    """The Lease as last read, and since when (on our steady clock) we have seen it with this record."""

    body: JSON | None
    """None once a Lease that we had seen was deleted."""
    record: LeaseRecord
    since: float


@dataclass(frozen=True)
class Create:
    """There is no Lease: make it."""


@dataclass(frozen=True)
class Renew:
    """The Lease is ours: write a newer renew time."""


@dataclass(frozen=True)
class TakeOver:
    """The Lease is free, or its holder was silent for the whole duration: write ourselves in."""


@dataclass(frozen=True)
class Wait:
    """Another holds the Lease; it may be taken at steady time `until` unless it is renewed before."""

    until: float
    holder: str


LeasePlan = Create | Renew | TakeOver | Wait


def new_identity() -> str:
    """`<hostname>_<uuid>` as client-go's users have it: the pod's name, and never the same twice."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def parse_lease(body: JSON) -> LeaseRecord:
    """The record inside a Lease object."""
    spec = body.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        duration_seconds=spec.get("leaseDurationSeconds"),
        acquired=parse_micro_time(spec.get("acquireTime")),
        renewed=parse_micro_time(spec.get("renewTime")),
        transitions=spec.get("leaseTransitions") or 0,
    )


def sighted(before: Sighting | None, body: JSON | None, steady: float) -> Sighting | None:
    """What we know after a read whose answer arrived at `steady`; None while no Lease was ever seen.

    Only a changed record starts the holder's time anew: an edit of labels or annotations is no sign of its life.
    The time of the answer, not of the request, because the record may have been written just before the answer left.
    """
    if body is None:
        return replace(before, body=None) if before else None
    record = parse_lease(body)
    unchanged = before is not None and before.record == record
    return Sighting(body, record, before.since if before and unchanged else steady)


def plan_lease(sighting: Sighting | None, candidate: Candidate, steady: float) -> LeasePlan:
    """What the candidate may do at `steady`, judging another's lease only by how long we saw it unchanged."""
    if sighting is None:
        return Create()
    record, is_gone = sighting.record, sighting.body is None
    if record.holder == candidate.identity:
        return Create() if is_gone else Renew()
    # A deleted Lease does not end its holder's term: it goes on writing until it notices.
    duration = candidate.lease_duration if record.duration_seconds is None else record.duration_seconds
    free_at = sighting.since + duration if record.holder else sighting.since
    if steady < free_at:
        return Wait(free_at, record.holder)
    return Create() if is_gone else TakeOver()


def desired_lease(key: ObjectKey, sighting: Sighting | None, candidate: Candidate, now: datetime) -> JSON:
    """The Lease with the candidate as holder. A change since it was read is a conflict, through its resourceVersion."""
    record = sighting.record if sighting else LeaseRecord()
    is_mine = record.holder == candidate.identity
    # Others notice a renewal by a changed time, and a wall clock set back could repeat the old one.
    renewed = now + timedelta(microseconds=1) if now == record.renewed else now
    body = _body(key, sighting)
    body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), **candidate.annotations}
    body["spec"] = {
        **(body.get("spec") or {}),
        "holderIdentity": candidate.identity,
        "leaseDurationSeconds": candidate.lease_duration,
        "acquireTime": to_micro_time(record.acquired if is_mine and record.acquired else now),
        "renewTime": to_micro_time(renewed),
        "leaseTransitions": record.transitions + (0 if is_mine or sighting is None else 1),
    }
    return body


def released_lease(body: JSON, now: datetime) -> JSON:
    """The Lease without a holder, as client-go leaves it: free at once also for clients that ignore the empty name."""
    moment = to_micro_time(now)
    freed = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": moment, "renewTime": moment}
    return {**body, "spec": {**body["spec"], **freed}}


def _body(key: ObjectKey, sighting: Sighting | None) -> JSON:
    if sighting is not None and sighting.body is not None:
        return deepcopy(sighting.body)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": key.namespace, "name": key.name},
    }
