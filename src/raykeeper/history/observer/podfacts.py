"""From a pod as the API server has it to what is kept of it. Pure.

What is not named here is not kept: above all the values of environment variables, which are often secret, and what
changes without meaning anything, such as conditions' times. So two facts differ only if something happened to the pod.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import Object
from raykeeper.history.observer.texts import parse_time, short
from raykeeper.layout.kube_facts import ContainerFact, PodFact

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


class _Status(msgspec.Struct, rename="camel"):
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


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


_read_spec = msgspec.json.Decoder(_Spec).decode
_read_status = msgspec.json.Decoder(_Status).decode


def pod_fact(pod: Object, at: datetime) -> PodFact:
    """The pod as it is at `at`. Raises `msgspec.ValidationError` for what is no pod."""
    meta, spec, status = pod.metadata, _read_spec(pod.spec or b"{}"), _read_status(pod.status or b"{}")
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


def _condition(status: _Status, kind: str, value: str) -> _Condition | None:
    return next((found for found in status.conditions if found.type == kind and found.status == value), None)


def _containers(status: _Status) -> tuple[ContainerFact, ...]:
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
