"""From an object of the API server to what is said about it. Pure.

An object of a shape that cannot be read is still listed: somebody looks for it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeVar

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.api.raycronjob import RAY_CRON_JOBS
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.api.rayservice import RAY_SERVICES
from raykeeper.api.times import parse_time
from raykeeper.history.live_objects.model import (
    LiveCondition,
    LiveContainer,
    LiveEvent,
    LiveKind,
    LiveObject,
    LivePod,
    LiveState,
)
from raykeeper.history.live_objects.words import condition_in_words, pod_in_words, with_message, worst_of
from raykeeper.history.observer.facts import KubeEvent, event_fact, pod_fact, short

RESOURCES: Final[dict[LiveKind, Resource[Object]]] = {
    "RayCluster": RAY_CLUSTERS,
    "RayJob": RAY_JOBS,
    "RayService": RAY_SERVICES,
    "RayCronJob": RAY_CRON_JOBS,
}
SUBMITTER: Final = "submitter"
_MOST_CONDITIONS: Final = 30
_UNREADABLE: Final = "Its status has a shape that this version does not know"


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _OnCluster(msgspec.Struct, rename="camel"):
    ray_cluster_name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    """What is read of a spec, of any kind: nothing of the templates of pods."""

    suspend: bool | None = None
    schedule: str = ""
    time_zone: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    """What is read of a status, of any kind."""

    state: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[_Condition, ...] = ()
    desired_worker_replicas: int = 0
    ready_worker_replicas: int = 0
    ray_cluster_name: str = ""
    job_status: str = ""
    job_deployment_status: str = ""
    service_status: str = ""
    active_service_status: _OnCluster = msgspec.field(default_factory=_OnCluster)
    pending_service_status: _OnCluster = msgspec.field(default_factory=_OnCluster)
    last_schedule_time: str | None = None


T = TypeVar("T")


def live_object(kind: LiveKind, item: Object) -> LiveObject:
    """The object as it is now."""
    meta = item.metadata
    owner = next((ref for ref in meta.owner_references if ref.controller), None)
    known = LiveObject(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        state="unknown",
        words=_UNREADABLE,
        created_at=parse_time(meta.creation_timestamp),
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        clusters=(meta.name,) if kind == "RayCluster" else (),
    )
    try:
        spec, status = _read(item.spec, _Spec), _read(item.status, _Status)
    except msgspec.MsgspecError:
        return known
    conditions = tuple(map(_condition, status.conditions[:_MOST_CONDITIONS]))
    known = msgspec.structs.replace(known, conditions=conditions, words="")
    described = _DESCRIBED[kind](known, spec, status)
    if meta.deletion_timestamp:
        return msgspec.structs.replace(described, state="ending", words="It is being deleted")
    return described


def _read(part: msgspec.Raw, kind: type[T]) -> T:
    return msgspec.json.decode(part or b"{}", type=kind)


def _condition(one: _Condition) -> LiveCondition:
    words, tone = condition_in_words(one.type, one.status)
    return LiveCondition(
        type=one.type,
        status=one.status,
        words=words,
        tone=tone,
        reason=one.reason,
        message=short(one.message),
        since=parse_time(one.last_transition_time),
    )


def _is(known: LiveObject, type_: str, status: str = "True") -> bool:
    return any(one.type == type_ and one.status == status for one in known.conditions)


def _cluster(known: LiveObject, spec: _Spec, status: _Status) -> LiveObject:
    state: LiveState = "starting"
    words = short(status.reason) or worst_of(known.conditions)
    if _is(known, "RayClusterInvalid"):
        state = "invalid"
    elif spec.suspend or status.state == "suspended":
        state = "suspended"
    elif status.state == "failed" or _is(known, "ReplicaFailure"):
        state = "failed"
    elif _is(known, "Ready") or (status.state == "ready" and not _is(known, "Ready", "False")):
        state = "ready"
    if state in ("ready", "starting") and status.desired_worker_replicas:
        workers = f"{status.ready_worker_replicas:,} of {status.desired_worker_replicas:,} workers are ready"
        words = with_message(workers, words)
    return msgspec.structs.replace(known, state=state, status=status.state, words=words)


_JOB_STATES: Final[dict[str, LiveState]] = {
    "Running": "running",
    "Complete": "succeeded",
    "Failed": "failed",
    "ValidationFailed": "invalid",
    "Suspending": "suspended",
    "Suspended": "suspended",
}


def _job(known: LiveObject, _: _Spec, status: _Status) -> LiveObject:
    state = _JOB_STATES.get(status.job_deployment_status, "starting")
    if state == "succeeded" and status.job_status not in ("", "SUCCEEDED"):
        state = "failed"  # an operator says Complete of a job that Ray says has failed or was stopped
    said = with_message(status.reason, status.message) if status.reason else status.message
    words = short(said) if said else "" if state == "succeeded" else worst_of(known.conditions)
    shown = " / ".join(word for word in (status.job_deployment_status, status.job_status) if word)
    clusters = (status.ray_cluster_name,) if status.ray_cluster_name else ()
    return msgspec.structs.replace(known, state=state, status=shown, words=words, clusters=clusters)


def _service(known: LiveObject, spec: _Spec, status: _Status) -> LiveObject:
    state: LiveState = "starting"
    if _is(known, "RayServiceInvalid"):
        state = "invalid"
    elif spec.suspend or _is(known, "Suspended"):
        state = "suspended"
    elif _is(known, "Ready"):
        state = "ready"
    elif _is(known, "ServeApplicationsHealthy", "False"):
        state = "failed"
    names = (status.active_service_status.ray_cluster_name, status.pending_service_status.ray_cluster_name)
    return msgspec.structs.replace(
        known,
        state=state,
        status=status.service_status,
        words=worst_of(known.conditions),
        clusters=tuple(name for name in names if name),
    )


def _cron_job(known: LiveObject, spec: _Spec, status: _Status) -> LiveObject:
    state: LiveState = "suspended" if spec.suspend else "scheduled"
    if _is(known, "Stalled"):
        state = "invalid"
    zone = f" ({spec.time_zone})" if spec.time_zone else ""
    last = f"last run for {status.last_schedule_time}" if status.last_schedule_time else "it has not run yet"
    words = worst_of(known.conditions) if state == "invalid" else f"Schedule {spec.schedule}{zone}: {last}"
    return msgspec.structs.replace(known, state=state, words=words)


_DESCRIBED: Final = {"RayCluster": _cluster, "RayJob": _job, "RayService": _service, "RayCronJob": _cron_job}


def live_pod(pod: Object, at: datetime) -> LivePod:
    """The pod as it is now. Raises `msgspec.ValidationError` for what is no pod."""
    fact = pod_fact(pod, at)
    return LivePod(
        namespace=pod.metadata.namespace,
        name=fact.name,
        role=fact.node_type if fact.node_type in (labels.HEAD, labels.WORKER) else SUBMITTER,
        group=fact.group,
        phase=fact.phase,
        words=pod_in_words(fact),
        node=fact.node,
        image=fact.image,
        restarts=sum(container.restarts for container in fact.containers),
        created_at=fact.created_at,
        containers=tuple(
            LiveContainer(
                name=one.name,
                state=one.state,
                reason=one.reason,
                message=one.message,
                exit_code=one.exit_code,
                restarts=one.restarts,
                last_reason=one.last_reason,
            )
            for one in fact.containers
        ),
    )


def live_event(event: KubeEvent, at: datetime) -> LiveEvent:
    fact = event_fact(event, at)
    return LiveEvent(
        at=fact.at,
        count=fact.count,
        type=fact.type,
        reason=fact.reason,
        message=fact.message,
        about_kind=fact.about_kind,
        about_name=fact.about_name,
        component=fact.component,
    )
