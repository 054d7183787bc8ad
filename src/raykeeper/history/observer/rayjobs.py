"""RayJobs as the observer sees them, and what of them is not written yet. No I/O; called by the watches.

What waits to be written is a record itself, bounded as the stored one is, and later merged with it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.meta import Object, ObjectKey
from raykeeper.api.times import parse_time
from raykeeper.clock import Clock
from raykeeper.history.bounded import Bounded
from raykeeper.history.observer.facts import RAY_GROUP, short
from raykeeper.layout.keys import RayJobId
from raykeeper.layout.kube_facts import EventFact
from raykeeper.layout.rayjobs import (
    MOST_WARNINGS,
    RayJobAttempt,
    RayJobRecord,
    RayJobState,
    merged_rayjob,
    says_the_same_state,
)
from raykeeper.logs import Log

MOST_ATTEMPTS_READ: Final = 50  # the operator keeps ten
MOST_EARLY: Final = 1_000  # RayJobs whose Events came before themselves
MANY_WAITING: Final = 1_000
FEW_STATES: Final = 5
"""While so many RayJobs wait, as when the store is away, each keeps its last states alone: some 2 KB."""


class _Spec(msgspec.Struct, rename="camel"):
    suspend: bool | None = None
    cluster_selector: dict[str, str] | None = None


class _ClusterStatus(msgspec.Struct, rename="camel"):
    reason: str = ""


class _Attempt(msgspec.Struct, rename="camel"):
    ray_cluster_name: str = ""
    job_id: str = ""
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    job_id: str = ""
    ray_cluster_name: str = ""
    job_status: str = ""
    job_deployment_status: str = ""
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    failed: int | None = None
    ray_cluster_status: _ClusterStatus = msgspec.field(default_factory=_ClusterStatus)
    failed_attempts: tuple[_Attempt, ...] = ()
    conditions: tuple[_Condition, ...] = ()


_read_spec = msgspec.json.Decoder(_Spec).decode
_read_status = msgspec.json.Decoder(_Status).decode


def rayjob_id(rayjob: Object) -> RayJobId:
    meta = rayjob.metadata
    return RayJobId(meta.namespace, meta.name, meta.uid)


def rayjob_record(rayjob: Object, at: datetime) -> RayJobRecord:
    """The RayJob as it is at `at`, a record of one state. Raises `msgspec.ValidationError` for what is none.

    Neither entrypoint nor runtime environment are kept: they may hold secrets, and Ray's own records have them.
    """
    meta, status = rayjob.metadata, _read_status(rayjob.status or b"{}")
    spec = _read_spec(rayjob.spec or b"{}")
    owners = [ref for ref in meta.owner_references if ref.controller and ref.api_version.startswith(f"{RAY_GROUP}/")]
    attempts = status.failed_attempts[-MOST_ATTEMPTS_READ:]
    clusters = [*(one.ray_cluster_name for one in attempts), status.ray_cluster_name]
    return RayJobRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        owner=owners[0].name if owners else "",
        created_at=parse_time(meta.creation_timestamp),
        is_on_selected_cluster=bool(spec.cluster_selector),
        states=(_state(spec, status, at),),
        attempts=tuple(map(_attempt, attempts)),
        clusters=tuple(dict.fromkeys(filter(None, clusters))),
        deletion_requested_at=parse_time(meta.deletion_timestamp),
    )


def _state(spec: _Spec, status: _Status, at: datetime) -> RayJobState:
    return RayJobState(
        at=at,
        deployment_status=status.job_deployment_status,
        job_status=status.job_status,
        job_id=status.job_id,
        cluster=status.ray_cluster_name,
        reason=status.reason,
        message=short(status.message),
        waits_for=short(_waits_for(status)),
        suspend=bool(spec.suspend),
        failed=status.failed or 0,
        started_at=status.start_time,
        ended_at=status.end_time,
    )


def _waits_for(status: _Status) -> str:
    """What the operator says that it waits for; of KubeRay's, what the cluster's status says."""
    for condition in status.conditions:
        if (condition.type, condition.status) == ("Reconciling", "True"):
            return f"{condition.reason}: {condition.message}"
    return status.ray_cluster_status.reason


def _attempt(attempt: _Attempt) -> RayJobAttempt:
    return RayJobAttempt(
        cluster=attempt.ray_cluster_name,
        job_id=attempt.job_id,
        reason=attempt.reason,
        message=short(attempt.message),
        started_at=attempt.start_time,
        ended_at=attempt.end_time,
    )


class RayJobs:
    """RayJobs that are there, each as it was last seen, and what of them is not written yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[RayJobId, RayJobRecord] = {}
        self._by_uid: dict[str, RayJobId] = {}
        self._early: Bounded[str, tuple[EventFact, ...]] = Bounded(MOST_EARLY)
        self.waiting: dict[RayJobId, RayJobRecord] = {}
        """To be merged with what is stored, in the order in which they came."""

    def see(self, rayjob: Object) -> None:
        """Take over a RayJob's state. Raises `msgspec.ValidationError` for what is none."""
        id_, record = rayjob_id(rayjob), rayjob_record(rayjob, self._clock.now())
        known = self._seen.get(id_)
        self._seen[id_], self._by_uid[id_.uid] = record, id_
        if known is None or not _says_the_same(known, record):
            self._wait(id_, msgspec.structs.replace(record, warnings=self._early.get(id_.uid) or ()))

    def lose(self, id_: RayJobId) -> None:
        """Take note that a RayJob is not there any more; of one that had ended nothing is to be said."""
        self._by_uid.pop(id_.uid, None)
        known = self._seen.pop(id_, None)
        if known is not None and not known.is_final:
            self._wait(id_, msgspec.structs.replace(known, deleted_at=self._clock.now()))

    def miss(self, id_: RayJobId) -> None:
        """One that was noted before and is gone now: it was deleted while nobody looked."""
        if id_ not in self._seen:
            self._wait(
                id_,
                RayJobRecord(
                    namespace=id_.namespace,
                    name=id_.rayjob,
                    uid=id_.uid,
                    deleted_at=self._clock.now(),
                    was_away_at_deletion=True,
                ),
            )

    def tell(self, event: EventFact) -> None:
        """Take over an Event about a RayJob, which may come before the RayJob is seen."""
        if event.type != "Warning":
            return
        id_ = self._by_uid.get(event.about_uid)
        if id_ is None:
            before = self._early.get(event.about_uid) or ()
            self._early.put(event.about_uid, (*before, event)[-MOST_WARNINGS:])
        else:
            self._wait(id_, msgspec.structs.replace(self._seen[id_], warnings=(event,)))

    def give_back(self, id_: RayJobId, record: RayJobRecord) -> None:
        """It could not be written: it comes before what was seen since."""
        since = self.waiting.get(id_)
        self.waiting[id_] = merged_rayjob(record, since) if since else record

    def _wait(self, id_: RayJobId, record: RayJobRecord) -> None:
        whole = merged_rayjob(self.waiting.get(id_), record)
        self.waiting[id_] = whole if len(self.waiting) < MANY_WAITING else _thinned(whole)


def _thinned(record: RayJobRecord) -> RayJobRecord:
    surplus = max(0, len(record.states) - FEW_STATES)
    left_out = record.states_left_out + surplus
    return msgspec.structs.replace(record, states=record.states[surplus:], states_left_out=left_out)


def _says_the_same(before: RayJobRecord, after: RayJobRecord) -> bool:
    is_same_state = says_the_same_state(before.last, after.states[0])
    return is_same_state and msgspec.structs.replace(before, states=()) == msgspec.structs.replace(after, states=())


log = Log("raykeeper.history.observer")


class RayJobSink:
    """RayJobs, from the watch."""

    def __init__(self, rayjobs: RayJobs) -> None:
        self._rayjobs = rayjobs
        self._known: dict[ObjectKey, RayJobId] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return [key for key in self._known if namespace is None or key.namespace == namespace]

    def put(self, item: Object) -> None:
        id_, known = rayjob_id(item), self._known.get(item.key)
        if known is not None and known != id_:
            self._rayjobs.lose(known)  # deleted and made again under the same name while we looked away
        self._known[item.key] = id_
        try:
            self._rayjobs.see(item)
        except msgspec.ValidationError as exc:
            log.warning(
                "object is not of the shape it should have", kind="RayJob", object=str(item.key), cause=str(exc)
            )

    def remove(self, key: ObjectKey) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._rayjobs.lose(known)
