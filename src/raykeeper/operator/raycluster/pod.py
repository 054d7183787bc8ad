"""A Ray pod as the decisions see it: read once from the cached bytes, then plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.containers import AUTOSCALER, HISTORY_COLLECTOR
from raykeeper.api.meta import Object
from raykeeper.api.podtemplates import is_collector
from raykeeper.api.times import parse_time
from raykeeper.operator.shared.pulls import USUAL

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LOST_AFTER: Final = timedelta(seconds=60)
"""How long after its end a pod may still be shown as running before its kubelet counts as gone. A live kubelet reports
within seconds; the control plane itself takes 40 to 50 to call a node lost."""
STUCK_AFTER: Final = timedelta(minutes=5)
"""How long after its end a pod may still be there, by whatever holds it, before it is replaced all the same."""
HEAD_POD: Final = "the head"
"""What the head is tracked as beside the worker groups. None of them can be called so: it is no value of a label."""
LONGEST_COST: Final = 11  # an int32 with its sign

REPLACED_AFTER: Final = timedelta(seconds=5)
"""How old a pod is at least when it is replaced because it ended: one that fails as soon as it starts does so for ever,
and who looks at it should see it."""


class _Reason(msgspec.Struct, gc=False, rename="camel"):
    reason: str = ""
    message: str = ""


class _Terminated(_Reason, gc=False, rename="camel"):
    exit_code: int = 0


class _Running(msgspec.Struct, gc=False):
    """That it is there is all that matters."""


class _State(msgspec.Struct, gc=False):
    waiting: _Reason | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, gc=False):
    name: str
    state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class _Container(msgspec.Struct, gc=False):
    name: str
    command: tuple[str, ...] = ()


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()


_read_spec = msgspec.json.Decoder(_Spec).decode
_read_status = msgspec.json.Decoder(_Status).decode


@dataclass(frozen=True)
class Pod:
    """What is known of one pod."""

    name: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created: datetime
    ends: datetime | None
    """When its grace period is over, if it is being deleted."""
    phase: str
    ip: str
    is_ready: bool
    ready_reason: str
    """Why it is, or is not, ready."""
    ready_message: str
    has_ended: bool
    """It will not run again by itself: it failed or succeeded, or its Ray container ended and must not be restarted."""
    has_autoscaler: bool
    """Ray's autoscaler runs in it."""
    seems_running: bool
    """At least one container is shown as running, or none was ever reported on."""
    ending: str = ""
    """How it ended, in words; empty where that is not known, or has not happened."""
    is_unready: bool = False
    """Somebody says that it is not ready; a pod of which nobody has said anything is neither this nor ready."""
    is_orphan: bool = False
    """Nobody owns it: a cluster was deleted and left it behind."""
    has_node: bool = True
    """A node was chosen for it."""
    is_held: bool = False
    """It has finalizers, so it stays until somebody takes them off."""
    is_forced: bool = False
    """It was deleted without a grace period: no kubelet is waited for, and deleting it again changes nothing."""
    has_collector: bool = False
    """A collector of its history is in it."""
    collector_trouble: str = ""
    """Why that does not run, in the kubelet's words; empty where it does, or starts."""

    @property
    def is_head(self) -> bool:
        return self.labels.get(labels.NODE_TYPE) == labels.HEAD

    @property
    def group(self) -> str:
        return self.labels.get(labels.GROUP, "")

    @property
    def tracked_as(self) -> str:
        """The group whose writes in flight are waited for before the pod is decided about."""
        return HEAD_POD if self.is_head else self.group

    @property
    def is_up(self) -> bool:
        """It runs, and nobody says that it is not ready: what KubeRay goes by when it calls a cluster ready."""
        return self.phase == "Running" and not self.is_unready

    @property
    def is_terminating(self) -> bool:
        return self.ends is not None

    @property
    def deletion_cost(self) -> int:
        """What Kubernetes' own controllers read: the lower, the sooner a pod is given up; nonsense counts as 0."""
        text = self.annotations.get(DELETION_COST, "0")
        return int(text) if len(text) <= LONGEST_COST and text.removeprefix("-").isdecimal() else 0

    def is_over(self, now: datetime) -> bool:
        """It has ended, and may be replaced."""
        return self.has_ended and now >= self.created + REPLACED_AFTER

    def is_lost(self, now: datetime) -> bool:
        """Its grace period is long over and it is still shown as running: no kubelet is left to report its end."""
        is_overdue = self.ends is not None and now >= self.ends + LOST_AFTER
        return is_overdue and self.seems_running and self.has_node and not self.is_forced

    def is_stuck(self, now: datetime) -> bool:
        """It should be gone for so long that it is replaced, whoever holds it."""
        return self.ends is not None and now >= self.ends + STUCK_AFTER


def parse_pod(item: Object) -> Pod:
    """The pod inside a cached object."""
    meta = item.metadata
    spec, status = _read_spec(item.spec or b"{}"), _read_status(item.status or b"{}")
    ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
    has_ended = _has_ended(spec, status)
    ending = _ending(status) if has_ended else ""
    reason, message = _why_ready(status, ready)
    return Pod(
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels,
        annotations=meta.annotations,
        created=parse_time(meta.creation_timestamp) or datetime.min.replace(tzinfo=UTC),
        ends=parse_time(meta.deletion_timestamp),
        phase=status.phase,
        ip=status.pod_ip,
        is_ready=ready is not None and ready.status == "True" and status.phase == "Running",
        ready_reason=reason,
        ready_message=message or ending,
        has_ended=has_ended,
        has_autoscaler=any(one.name == AUTOSCALER for one in spec.containers),
        seems_running=not status.container_statuses
        or any(one.state.running is not None for one in status.container_statuses),
        ending=ending,
        is_unready=ready is not None and ready.status != "True",
        is_orphan=not meta.owner_references,
        has_node=bool(spec.node_name),
        is_held=bool(meta.finalizers),
        is_forced=meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds == 0,
        has_collector=any(is_collector(one.name, one.command) for one in (*spec.init_containers, *spec.containers)),
        collector_trouble=_collector_trouble(status),
    )


def _collector_trouble(status: _Status) -> str:
    for one in (*status.init_container_statuses, *status.container_statuses):
        waiting = one.state.waiting
        if one.name == HISTORY_COLLECTOR and waiting is not None and waiting.reason not in USUAL:
            return ", ".join(filter(None, (waiting.reason, waiting.message)))
    return ""


def _has_ended(spec: _Spec, status: _Status) -> bool:
    if status.phase in ("Failed", "Succeeded"):
        return True
    ray_name = spec.containers[0].name if spec.containers else ""
    ray = next((one for one in status.container_statuses if one.name == ray_name), None)
    is_over = ray is not None and ray.state.terminated is not None
    return status.phase == "Running" and is_over and spec.restart_policy == "Never"


def _ending(status: _Status) -> str:
    """Why the kubelet ended the pod, as in an eviction; else how its first container that failed, or ended, did."""
    if status.reason:
        return ", ".join(filter(None, (status.reason, status.message)))
    ends = [(one.name, one.state.terminated) for one in status.container_statuses if one.state.terminated]
    for name, end in sorted(ends, key=lambda one: one[1].exit_code == 0):
        return ", ".join(
            filter(None, (f"container {name} ended with exit code {end.exit_code}", end.reason, end.message))
        )
    return ""


def _why_ready(status: _Status, ready: _Condition | None) -> tuple[str, str]:
    """The reason of the Ready condition; where it only says that containers are not ready, that of the first such.

    A pod that no kubelet has looked at yet has no such condition; then why no node takes it.
    """
    if ready is None:
        homeless = (one for one in status.conditions if one.type == "PodScheduled" and one.status == "False")
        return next(((one.reason, one.message) for one in homeless), ("Unknown", ""))
    if ready.reason == "ContainersNotReady":
        for one in status.container_statuses:
            cause = one.state.waiting or one.state.terminated
            if cause is not None and cause.reason:
                return cause.reason, "; ".join(
                    filter(None, (ready.message, f"{one.name}: {cause.message}".rstrip(": ")))
                )
    return ready.reason, ready.message
