"""What is said about an object that exists, in words that need no knowledge of operators."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from raykeeper.api.meta import JSON, Object
from raykeeper.api.raycluster import CONDITION_TYPES
from raykeeper.history.live_objects.model import LiveKind, LiveObject, LiveState, kind_named
from raykeeper.history.live_objects.reading import live_object, live_pod
from raykeeper.history.live_objects.words import condition_in_words
from support.observer_scene import as_object, pod

AT = datetime(2026, 11, 17, tzinfo=UTC)


def read(kind: LiveKind, status: JSON | None = None, spec: JSON | None = None, **metadata: Any) -> LiveObject:
    meta = {"name": "x", "namespace": "team-a", "uid": "u", "creationTimestamp": "2026-11-17T00:00:00Z", **metadata}
    return live_object(kind, as_object({"metadata": meta, "spec": spec or {}, "status": status or {}}, Object))


def condition(type_: str, status: str, message: str = "") -> JSON:
    time = "2026-11-17T00:00:01Z"
    return {"type": type_, "status": status, "reason": "Because", "message": message, "lastTransitionTime": time}


CASES: list[tuple[LiveKind, JSON, JSON, LiveState, str]] = [
    ("RayCluster", {}, {}, "starting", ""),
    (
        "RayCluster",
        {"state": "ready", "desiredWorkerReplicas": 2, "readyWorkerReplicas": 2},
        {},
        "ready",
        "2 of 2 work",
    ),
    ("RayCluster", {"state": "ready", "conditions": [condition("Ready", "False", "1 pod")]}, {}, "starting", ": 1 pod"),
    (
        "RayCluster",
        {"conditions": [condition("RayClusterInvalid", "True", "no head")]},
        {},
        "invalid",
        "invalid: no head",
    ),
    ("RayCluster", {"conditions": [condition("ReplicaFailure", "True", "quota")]}, {}, "failed", "could not be made"),
    ("RayCluster", {}, {"suspend": True}, "suspended", ""),
    ("RayJob", {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, {}, "running", ""),
    ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, {}, "succeeded", ""),
    ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED", "message": "boom"}, {}, "failed", "boom"),
    ("RayJob", {"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "9 s"}, {}, "failed", "9 s"),
    ("RayJob", {"jobDeploymentStatus": "ValidationFailed", "message": "no entrypoint"}, {}, "invalid", "no entrypoint"),
    ("RayService", {"conditions": [condition("Ready", "True")], "serviceStatus": "Running"}, {}, "ready", ""),
    ("RayService", {"conditions": [condition("ServeApplicationsHealthy", "False", "app")]}, {}, "failed", ": app"),
    ("RayService", {"conditions": [condition("RayServiceInvalid", "True", "bad")]}, {}, "invalid", ": bad"),
    (
        "RayCronJob",
        {},
        {"schedule": "0 3 * * *", "timeZone": "Europe/Berlin"},
        "scheduled",
        "0 3 * * * (Europe/Berlin)",
    ),
    ("RayCronJob", {}, {"schedule": "0 3 * * *", "suspend": True}, "suspended", "0 3 * * *"),
    ("RayCronJob", {"conditions": [condition("Stalled", "True", "no such zone")]}, {}, "invalid", "no such zone"),
]


@pytest.mark.parametrize(("kind", "status", "spec", "state", "words"), CASES)
def test_every_kind_has_a_state_and_a_sentence(
    kind: LiveKind, status: JSON, spec: JSON, state: LiveState, words: str
) -> None:
    found = read(kind, status, spec)
    assert found.state == state
    assert words in found.words


def test_what_is_being_deleted_is_said_to_end() -> None:
    assert read("RayJob", deletionTimestamp="2026-11-17T00:00:09Z").state == "ending"


def test_an_object_that_cannot_be_read_is_still_listed() -> None:
    found = read("RayCluster", {"state": 7, "conditions": "all fine"})
    assert (found.name, found.state, found.clusters) == ("x", "unknown", ("x",))


def test_the_clusters_of_a_service_begin_with_the_one_that_serves() -> None:
    status = {"activeServiceStatus": {"rayClusterName": "a"}, "pendingServiceStatus": {"rayClusterName": "b"}}
    assert read("RayService", status).clusters == ("a", "b")


@pytest.mark.parametrize("type_", sorted(CONDITION_TYPES))
def test_every_condition_of_our_operator_has_words(type_: str) -> None:
    for status in ("True", "False"):
        assert type_ not in condition_in_words(type_, status)[0]


def test_a_condition_of_somebody_else_is_told_as_it_is() -> None:
    assert condition_in_words("example.com/Paid", "Unknown") == ("example.com/Paid is unknown", "quiet")


def waiting(reason: str, /, **last: Any) -> JSON:
    state = {"waiting": {"reason": reason, "message": "back-off 40s"}}
    return {"name": "ray-head", "restartCount": 4, "state": state, "lastState": {"terminated": last} if last else {}}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Running"}, ""),
        ({"phase": "Pending"}, "being started"),
        ({"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]}, "ray-head waits (ImagePullBackOff)"),
        (
            {"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff", reason="OOMKilled")]},
            "with OOMKilled",
        ),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "It failed (Evicted): low on memory"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes"}]},
            "No node can take it: 0/4 nodes",
        ),
    ],
)
def test_a_pod_says_what_it_waits_for_or_why_it_failed(status: JSON, words: str) -> None:
    found = live_pod(pod(**status), AT)
    assert words in found.words
    assert bool(found.words) == bool(words)


def test_restarts_of_all_containers_are_counted() -> None:
    statuses = [waiting("CrashLoopBackOff", reason="Error"), {"name": "collector", "restartCount": 2}]
    assert live_pod(pod(containerStatuses=statuses), AT).restarts == 6


def test_kinds_are_named_as_people_do() -> None:
    assert {kind_named(text) for text in ("raycluster", "RayClusters", "RAYCLUSTER")} == {"RayCluster"}
    assert kind_named("pod") is None
