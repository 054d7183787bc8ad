"""What is the matter with one Ray object, in plain words: from its status, its pods and its Events. Pure.

`observing.py` reads what is needed; waiting methods raise errors that carry a `Diagnosis`, and `kubectl raykeeper`
shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.api.raycluster import (
    HEAD_POD_READY,
    HISTORY_COLLECTED,
    INVALID,
    PROVISIONED,
    READY,
    REPLICA_FAILURE,
    SCHEDULED,
    SUSPENDED,
    SUSPENDING,
)


class Health(StrEnum):
    """How an object is, in one word for all kinds."""

    READY = "ready"
    """A cluster or a service that works; a cron job that waits for its next time."""
    RUNNING = "running"
    """A job at work."""
    FINISHED = "finished"
    """A job that succeeded."""
    WAITING = "waiting"
    """Not there yet, or not whole."""
    SUSPENDED = "suspended"
    FAILED = "failed"
    """Nothing will become of it unless somebody acts."""
    DELETING = "deleting"
    GONE = "gone"
    """There is no such object."""

    @property
    def is_well(self) -> bool:
        return self in (Health.READY, Health.RUNNING, Health.FINISHED, Health.SUSPENDED)


@dataclass(frozen=True)
class ConditionSeen:
    """A condition, and what it means."""

    type: str
    status: str
    reason: str
    message: str
    since: str
    words: str
    """In a sentence."""
    is_trouble: bool
    """It says that something is not as it should be."""


@dataclass(frozen=True)
class PodSeen:
    """A pod, and why it does not work if it does not."""

    name: str
    role: str
    """`head`, `worker` or `submitter`."""
    group: str
    phase: str
    is_ready: bool
    restarts: int
    node: str
    created_at: str
    problems: tuple[str, ...] = ()
    """Such as `ray-worker waits: ImagePullBackOff: …`, most telling first."""


@dataclass(frozen=True)
class EventSeen:
    """A Kubernetes Event."""

    at: str
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    about: str
    """Such as `Pod/demo-head`."""
    count: int = 1


@dataclass(frozen=True)
class Observed:
    """All that was read about one object. What could not be read is named in `unread`."""

    kind: str
    key: ObjectKey
    object: JSON | None
    clusters: tuple[JSON, ...] = ()
    """RayClusters that belong to it; itself, if it is one."""
    pods: tuple[JSON, ...] = ()
    events: tuple[JSON, ...] = ()
    unread: tuple[str, ...] = ()
    headline: str = ""
    """What the history server's report says first."""


@dataclass(frozen=True)
class Diagnosis:
    """One object at a glance."""

    kind: str
    namespace: str
    name: str
    health: Health
    state: str
    """In the operator's own words: `ready`, `Running / SUCCEEDED`, and so on."""
    created_at: str = ""
    waits_for: tuple[str, ...] = ()
    """What it waits for, or why it failed, most telling first."""
    facts: tuple[tuple[str, str], ...] = ()
    """Such as workers, Ray's version, addresses."""
    conditions: tuple[ConditionSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    events: tuple[EventSeen, ...] = ()
    """Newest last."""
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""
    headline: str = ""
    """What the history server's report says first, where there is one."""

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def summary(self) -> str:
        """A few lines: how it is, why, and the last warnings."""
        lines = [f"{self.subject} is {self.health.value}{f' ({self.state})' if self.state else ''}"]
        lines += [f"report: {self.headline}"] if self.headline else []
        lines += [f"- {reason}" for reason in self.waits_for]
        for pod in self.pods:
            lines += [f"- pod {pod.name}: {problem}" for problem in pod.problems]
        warnings = [event for event in self.events if event.type == "Warning"]
        lines += [f"- event {event.about}: {event.reason}: {event.message}" for event in warnings[-_WARNINGS:]]
        lines += [f"- not known: {missing}" for missing in self.unread]
        return "\n".join(dict.fromkeys(lines))


_WARNINGS = 5
EVENTS_SHOWN = 12


def diagnose(observed: Observed) -> Diagnosis:
    """Put what was read into words."""
    key, item = observed.key, observed.object
    if item is None:
        return Diagnosis(
            observed.kind,
            key.namespace,
            key.name,
            Health.GONE,
            "",
            events=_events(observed.events),
            unread=observed.unread,
            headline=observed.headline,
        )
    pods = tuple(sorted((_pod(pod) for pod in observed.pods), key=_pod_order))
    conditions = tuple(_conditions(item, observed.clusters))
    health, state = _health(observed.kind, item)
    return Diagnosis(
        observed.kind,
        key.namespace,
        key.name,
        health,
        state,
        created_at=item["metadata"].get("creationTimestamp", ""),
        waits_for=tuple(dict.fromkeys(_reasons(observed, health, conditions, pods))),
        facts=tuple(_facts(observed, item)),
        conditions=conditions,
        pods=pods,
        events=_events(observed.events),
        unread=observed.unread,
        headline=observed.headline,
    )


def status_of(item: JSON) -> JSON:
    status: JSON = item.get("status") or {}
    return status


def has_condition(item: JSON, kind: str) -> bool:
    """Whether a condition of this type is True."""
    return any(one["type"] == kind and one["status"] == "True" for one in status_of(item).get("conditions", ()))


def is_current(item: JSON) -> bool:
    """Whether the status is about the present spec. KubeRay's operator may not say; then it is believed."""
    observed = status_of(item).get("observedGeneration")
    return observed is None or observed >= item["metadata"].get("generation", 0)


def health_of(kind: str, item: JSON) -> Health:
    """By its metadata, spec and status alone."""
    return _health(kind, item)[0]


def _health(kind: str, item: JSON) -> tuple[Health, str]:
    if item["metadata"].get("deletionTimestamp"):
        return Health.DELETING, "being deleted"
    return _HEALTH[kind](item)


def _cluster_health(item: JSON) -> tuple[Health, str]:
    status = status_of(item)
    state = str(status.get("state", ""))
    if has_condition(item, INVALID) or (state == "failed" and not has_condition(item, READY)):
        return Health.FAILED, state
    if not is_current(item):
        return Health.WAITING, "the operator has not seen the present spec"
    if has_condition(item, SUSPENDED):
        return Health.SUSPENDED, "suspended"
    said = _status_of_condition(item, READY)
    is_ready = said == "True" if said else state == "ready" and has_condition(item, HEAD_POD_READY)
    if not said and not status.get("conditions"):
        is_ready = state == "ready"  # an operator without conditions
    return (Health.READY if is_ready else Health.WAITING), state


_JOB_HEALTH = {
    "Complete": Health.FINISHED,
    "Failed": Health.FAILED,
    "ValidationFailed": Health.FAILED,
    "Suspended": Health.SUSPENDED,
    "Running": Health.RUNNING,
}


def _job_health(item: JSON) -> tuple[Health, str]:
    status = status_of(item)
    deployment, job = str(status.get("jobDeploymentStatus", "")), str(status.get("jobStatus", ""))
    health = _JOB_HEALTH.get(deployment, Health.WAITING)
    if health is Health.FINISHED and job in ("FAILED", "STOPPED"):
        health = Health.FAILED
    return health, " / ".join(part for part in (deployment, job) if part)


def _service_health(item: JSON) -> tuple[Health, str]:
    state = str(status_of(item).get("serviceStatus", ""))
    if item.get("spec", {}).get("suspend") and state != "Running":
        return Health.SUSPENDED, state or "suspended"
    if not is_current(item):
        return Health.WAITING, "the operator has not seen the present spec"
    ready = _status_of_condition(item, READY)
    if ready == "True" or (not ready and state == "Running"):
        return Health.READY, state
    return Health.WAITING, state


def _cron_health(item: JSON) -> tuple[Health, str]:
    if item.get("spec", {}).get("suspend"):
        return Health.SUSPENDED, "suspended"
    bad = [one for one in status_of(item).get("conditions", ()) if _is_trouble(one)]
    active = len(status_of(item).get("active", ()))
    return (Health.FAILED if bad else Health.READY), f"{active} active" if active else "between two times"


_HEALTH = {
    "RayCluster": _cluster_health,
    "RayJob": _job_health,
    "RayService": _service_health,
    "RayCronJob": _cron_health,
}


def _status_of_condition(item: JSON, kind: str) -> str:
    found = (one["status"] for one in status_of(item).get("conditions", ()) if one["type"] == kind)
    return next(found, "")


_GOOD_WHEN_FALSE = frozenset(
    {REPLICA_FAILURE, SUSPENDING, SUSPENDED, INVALID, "UpgradeInProgress", "RollbackInProgress"}
)
_WORDS = {
    (HEAD_POD_READY, "True"): "the head pod is ready",
    (HEAD_POD_READY, "False"): "the head pod is not ready",
    (PROVISIONED, "True"): "all pods have been ready once",
    (PROVISIONED, "False"): "not all pods have been ready yet",
    (REPLICA_FAILURE, "True"): "a pod could not be made or deleted",
    (SUSPENDING, "True"): "it is being suspended",
    (SUSPENDED, "True"): "it is suspended: it has no pods until it is resumed",
    (SUSPENDED, "False"): "it is not suspended",
    (SUSPENDING, "False"): "it is not being suspended",
    (READY, "True"): "everything that should be there works",
    (READY, "False"): "not everything that should be there works",
    (INVALID, "True"): "the spec cannot be worked on; it must be changed",
    (SCHEDULED, "True"): "every pod has a node",
    (SCHEDULED, "False"): "pods wait for nodes",
    (HISTORY_COLLECTED, "True"): "every pod has a history collector",
    (HISTORY_COLLECTED, "False"): "not every pod has a history collector",
    ("UpgradeInProgress", "True"): "an upgrade is going on",
    ("UpgradeInProgress", "False"): "no upgrade is going on",
}


def _is_trouble(condition: JSON) -> bool:
    kind, status = condition["type"], condition["status"]
    if kind in (SUSPENDED, SUSPENDING, "UpgradeInProgress"):
        return False
    return bool(status == "True") if kind in _GOOD_WHEN_FALSE else bool(status == "False")


def _conditions(item: JSON, clusters: Sequence[JSON]) -> Iterator[ConditionSeen]:
    for condition in status_of(item).get("conditions", ()):
        yield _condition(condition)
    for cluster in clusters:
        if cluster["metadata"]["name"] == item["metadata"]["name"] and cluster.get("kind") == item.get("kind"):
            continue
        for condition in status_of(cluster).get("conditions", ()):
            if _is_trouble(condition):
                yield _condition(condition, f"RayCluster {cluster['metadata']['name']}: ")


def _condition(condition: JSON, prefix: str = "") -> ConditionSeen:
    kind, status = str(condition["type"]), str(condition["status"])
    reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
    said = _WORDS.get((kind, status)) or f"{kind} is {status}"
    is_trouble = _is_trouble(condition)
    detail = message or (reason if is_trouble else "")
    words = f"{prefix}{said}{f': {detail}' if detail and is_trouble else ''}"
    since = str(condition.get("lastTransitionTime", ""))
    return ConditionSeen(kind, status, reason, message, since, words, is_trouble)


def _reasons(
    observed: Observed, health: Health, conditions: Sequence[ConditionSeen], pods: Sequence[PodSeen]
) -> Iterator[str]:
    """Why it is not as it should be; nothing where it is."""
    if health.is_well or observed.object is None:
        return
    status = status_of(observed.object)
    for name in ("message", "reason"):
        if status.get(name) and observed.kind != "RayCluster":
            yield (
                f"{status['reason']}: {status['message']}"
                if status.get("message") and status.get("reason")
                else str(status[name])
            )
            break
    if observed.kind == "RayCluster" and status.get("reason"):
        yield str(status["reason"])
    if not status:
        yield "no operator has looked at it yet; is one running, and does it watch this namespace?"
    yield from (condition.words for condition in conditions if condition.is_trouble)
    yield from _missing_workers(observed.clusters)
    yield from _applications(status)
    broken = [pod for pod in pods if pod.problems]
    yield from (f"pod {pod.name}: {pod.problems[0]}" for pod in broken[:_PODS_NAMED])
    if len(broken) > _PODS_NAMED:
        yield f"{len(broken) - _PODS_NAMED} more pods have problems"


_PODS_NAMED = 5


def _missing_workers(clusters: Iterable[JSON]) -> Iterator[str]:
    for cluster in clusters:
        status = status_of(cluster)
        wanted, ready = status.get("desiredWorkerReplicas", 0), status.get("readyWorkerReplicas", 0)
        if ready < wanted:
            yield f"{ready} of {wanted} workers are ready"


def _applications(status: JSON) -> Iterator[str]:
    """Of Serve, those that do not run."""
    for part in ("pendingServiceStatus", "activeServiceStatus"):
        for name, app in (status.get(part) or {}).get("applicationStatuses", {}).items():
            if app.get("status") not in ("RUNNING", "", None):
                said = f": {app['message']}" if app.get("message") else ""
                yield f"Serve application {name or 'default'} is {app['status']}{said}"


def _facts(observed: Observed, item: JSON) -> Iterator[tuple[str, str]]:
    status, spec = status_of(item), item.get("spec", {})
    if observed.kind == "RayJob":
        yield from _given(("entrypoint", spec.get("entrypoint")), ("job id", status.get("jobId")))
        yield from _given(("started", status.get("startTime")), ("ended", status.get("endTime")))
        if status.get("failed"):
            yield "failed attempts", str(status["failed"])
        yield from _given(("history", status.get("historyURL")))
    if observed.kind == "RayService":
        yield from _given(("serve endpoints", str(status.get("numServeEndpoints", 0))))
        for part in ("activeServiceStatus", "pendingServiceStatus"):
            yield from _given(("history", (status.get(part) or {}).get("historyURL")))
    if observed.kind == "RayCronJob":
        yield from _given(("schedule", spec.get("schedule")), ("time zone", spec.get("timeZone")))
        yield from _given(("last scheduled", status.get("lastScheduleTime")))
    for cluster in observed.clusters:
        state = status_of(cluster)
        if observed.kind != "RayCluster":
            yield "RayCluster", cluster["metadata"]["name"]
        yield "workers", f"{state.get('readyWorkerReplicas', 0)} of {state.get('desiredWorkerReplicas', 0)} ready"
        yield from _given(("Ray", cluster.get("spec", {}).get("rayVersion")))
        yield from _given(("head service", (state.get("head") or {}).get("serviceName")))
        amounts = (("cpu", "desiredCPU"), ("memory", "desiredMemory"), ("gpu", "desiredGPU"))
        asked = [f"{name} {state[key]}" for name, key in amounts if str(state.get(key) or "0") != "0"]
        yield from _given(("asks for", ", ".join(asked)))


def _given(*facts: tuple[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, str(value)) for name, value in facts if value)


def _pod_order(pod: PodSeen) -> tuple[int, str, str]:
    return ("head", "submitter", "worker").index(pod.role), pod.group, pod.name


def _pod(pod: JSON) -> PodSeen:
    metadata, status = pod["metadata"], pod.get("status", {})
    named: JSON = metadata.get("labels", {})
    node_type = named.get(labels.NODE_TYPE)
    ready = next((one["status"] for one in status.get("conditions", ()) if one["type"] == "Ready"), "False")
    return PodSeen(
        name=metadata["name"],
        role=node_type if node_type in (labels.HEAD, labels.WORKER) else "submitter",
        group=named.get(labels.GROUP, ""),
        phase="Terminating" if metadata.get("deletionTimestamp") else str(status.get("phase", "Pending")),
        is_ready=ready == "True",
        restarts=sum(one.get("restartCount", 0) for one in status.get("containerStatuses", ())),
        node=pod.get("spec", {}).get("nodeName", ""),
        created_at=metadata.get("creationTimestamp", ""),
        problems=tuple(_pod_problems(pod)),
    )


def _pod_problems(pod: JSON) -> Iterator[str]:
    status = pod.get("status", {})
    if status.get("phase") == "Succeeded":
        return
    if status.get("phase") == "Failed" and (status.get("reason") or status.get("message")):
        yield ": ".join(part for part in (status.get("reason"), status.get("message")) if part)
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            said = condition.get("message") or condition.get("reason") or "the scheduler does not say why"
            yield f"it has no node: {said}"
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield from _container_problems(container)


def _container_problems(container: JSON) -> Iterator[str]:
    name, state = container["name"], container.get("state", {})
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and waiting.get("reason"):
        said = f": {waiting['message']}" if waiting.get("message") else ""
        yield f"{name} waits: {waiting['reason']}{said}"
    if ended and ended.get("exitCode"):
        yield f"{name} ended {_ending(ended)}"
    last = container.get("lastState", {}).get("terminated")
    if last and (last.get("exitCode") or last.get("reason") == "OOMKilled"):
        times = container.get("restartCount", 0)
        yield f"{name} restarted {times} time{'' if times == 1 else 's'}, the last one ended {_ending(last)}"
    if "running" in state and not container.get("ready", True):
        yield f"{name} runs and is not ready"


def _ending(ended: JSON) -> str:
    said = ended.get("reason", "")
    why = f" ({said})" if said and said != "Error" else ""
    message = f": {ended['message'].strip()}" if ended.get("message", "").strip() else ""
    return f"with exit code {ended.get('exitCode', '?')}{why}{message}"


def _events(events: Iterable[JSON]) -> tuple[EventSeen, ...]:
    seen = sorted((_event(event) for event in events), key=lambda event: event.at)
    return tuple(seen[-EVENTS_SHOWN:])


def _event(event: JSON) -> EventSeen:
    about: JSON = event.get("regarding") or event.get("involvedObject") or {}
    series: JSON = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("lastTimestamp"))
    first = event.get("eventTime") or event.get("metadata", {}).get("creationTimestamp") or ""
    count = series.get("count") or event.get("deprecatedCount") or event.get("count") or 1
    return EventSeen(
        at=str(next((time for time in times if time), first)),
        type=str(event.get("type", "Normal")),
        reason=str(event.get("reason", "")),
        message=str(event.get("note") or event.get("message") or "").strip(),
        about=f"{about.get('kind', '')}/{about.get('name', '')}",
        count=int(count),
    )
