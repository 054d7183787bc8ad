"""From clusters, pods and Events as the API server has them to what is stored of them. Pure.

What is not named here is not stored: above all the values of environment variables, which are often secret, and what
changes without meaning anything, such as conditions' times. So two facts differ only if something happened to the pod.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import Object, Resource
from raykeeper.api.times import parse_time
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.kube_facts import ClusterFact, ContainerFact, EventFact, PodFact

MOST_CHARACTERS = 4096  # a container's termination message may have as many bytes; Events at most 1024
_CUT = "…"


def short(text: str) -> str:
    """The text, cut where it is longer than any that Kubernetes itself makes."""
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + _CUT


RAY_GROUP: Final = "ray.io"
SUSPENDED: Final = "suspended"


class _ClusterSpec(msgspec.Struct):
    suspend: bool | None = None


class _ClusterStatus(msgspec.Struct, rename="camel"):
    state: str = ""
    reason: str = ""


_read_cluster_spec = msgspec.json.Decoder(_ClusterSpec).decode
_read_cluster_status = msgspec.json.Decoder(_ClusterStatus).decode


def cluster_id(cluster: Object) -> ClusterId:
    meta = cluster.metadata
    return ClusterId(meta.namespace, meta.name, meta.uid)


def cluster_fact(cluster: Object, at: datetime) -> ClusterFact:
    """The RayCluster as it is at `at`. Raises `msgspec.ValidationError` for what is none."""
    meta, status = cluster.metadata, _read_cluster_status(cluster.status or b"{}")
    spec = _read_cluster_spec(cluster.spec or b"{}")
    owners = [ref for ref in meta.owner_references if ref.controller and ref.api_version.startswith(f"{RAY_GROUP}/")]
    owner = owners[0] if owners else None
    return ClusterFact(
        at=at,
        uid=meta.uid,
        name=meta.name,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        state=status.state,
        reason=short(status.reason),
        suspend=spec.suspend or status.state == SUSPENDED,
        created_at=parse_time(meta.creation_timestamp),
        deletion_requested_at=parse_time(meta.deletion_timestamp),
    )


class _About(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Source(msgspec.Struct):
    component: str = ""
    host: str = ""


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: datetime | None = None


class KubeEvent(Object, rename="camel"):
    """An Event of the core API, which shows those of `events.k8s.io` too."""

    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""
    type: str = ""
    source: _Source = msgspec.field(default_factory=_Source)
    reporting_component: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: _Series | None = None


KUBE_EVENTS: Final[Resource[KubeEvent]] = Resource("", "v1", "events", "Event", KubeEvent)


def event_fact(event: KubeEvent, seen_at: datetime) -> EventFact:
    """What the Event says; `seen_at` is its time where it has none."""
    about, series = event.involved_object, event.series or _Series()
    made_at = parse_time(event.metadata.creation_timestamp) or seen_at
    first_at = event.first_timestamp or event.event_time or made_at
    return EventFact(
        at=max(first_at, series.last_observed_time or event.last_timestamp or first_at),
        uid=event.metadata.uid,
        first_at=first_at,
        count=max(1, series.count, event.count or 0),
        type=event.type,
        reason=event.reason,
        message=short(event.message),
        about_kind=about.kind,
        about_name=about.name,
        about_uid=about.uid,
        component=event.source.component or event.reporting_component,
        host=event.source.host,
    )


ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class _Waiting(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""


class _Running(msgspec.Struct, rename="camel"):
    started_at: datetime | None = None


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class _State(msgspec.Struct, rename="camel"):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str
    image: str = ""
    restart_count: int = 0
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Container(msgspec.Struct):
    name: str
    image: str = ""


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


_read_pod_spec = msgspec.json.Decoder(_PodSpec).decode
_read_pod_status = msgspec.json.Decoder(_PodStatus).decode


def pod_fact(pod: Object, at: datetime) -> PodFact:
    """The pod as it is at `at`. Raises `msgspec.ValidationError` for what is no pod."""
    meta, spec, status = pod.metadata, _read_pod_spec(pod.spec or b"{}"), _read_pod_status(pod.status or b"{}")
    scheduled, disrupted = _condition(status, "PodScheduled", "False"), _condition(status, "DisruptionTarget", "True")
    return PodFact(
        at=at,
        uid=meta.uid,
        name=meta.name,
        group=meta.labels.get(labels.GROUP, ""),
        node_type=meta.labels.get(labels.NODE_TYPE, ""),
        phase=status.phase,
        reason=status.reason,
        message=short(status.message),
        unschedulable=short(scheduled.message or scheduled.reason) if scheduled else "",
        disruption=disrupted.reason if disrupted else "",
        disruption_message=short(disrupted.message) if disrupted else "",
        node=spec.node_name,
        image=spec.containers[0].image if spec.containers else "",  # the first container runs Ray
        host_ip=status.host_ip,
        pod_ip=status.pod_ip,
        created_at=parse_time(meta.creation_timestamp),
        deletion_requested_at=parse_time(meta.deletion_timestamp),
        containers=_containers(status),
    )


def is_living_head(pod: PodFact) -> bool:
    """Whether a head runs in this pod, or may yet."""
    return pod.node_type == labels.HEAD and not pod.deleted and pod.phase not in ENDED_PHASES


def _condition(status: _PodStatus, kind: str, value: str) -> _Condition | None:
    return next((found for found in status.conditions if found.type == kind and found.status == value), None)


def _containers(status: _PodStatus) -> tuple[ContainerFact, ...]:
    return (
        *(_container_fact(found, is_init=True) for found in status.init_container_statuses),
        *(_container_fact(found, is_init=False) for found in status.container_statuses),
    )


def _container_fact(status: _ContainerStatus, *, is_init: bool) -> ContainerFact:
    last = status.last_state.terminated or _Terminated()
    fact = ContainerFact(
        name=status.name,
        image=status.image,
        is_init=is_init,
        restarts=status.restart_count,
        last_reason=last.reason,
        last_message=short(last.message),
        last_exit_code=last.exit_code,
        last_signal=last.signal,
        last_started_at=last.started_at,
        last_finished_at=last.finished_at,
    )
    return _in_state(fact, status.state)


def _in_state(fact: ContainerFact, state: _State) -> ContainerFact:
    if (ended := state.terminated) is not None:
        return msgspec.structs.replace(
            fact,
            state="terminated",
            reason=ended.reason,
            message=short(ended.message),
            exit_code=ended.exit_code,
            signal=ended.signal,
            started_at=ended.started_at,
            finished_at=ended.finished_at,
        )
    if state.running is not None:
        return msgspec.structs.replace(fact, state="running", started_at=state.running.started_at)
    waiting = state.waiting or _Waiting()
    return msgspec.structs.replace(fact, state="waiting", reason=waiting.reason, message=short(waiting.message))
