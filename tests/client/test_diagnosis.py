"""What is the matter with an object, in words."""

from __future__ import annotations

from typing import Any

import pytest

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.client import Health
from raykeeper.client.diagnosis import Observed, diagnose


def condition(kind: str, status: str, message: str = "") -> JSON:
    return {"type": kind, "status": status, "reason": "Because", "message": message, "lastTransitionTime": ""}


def an_object(kind: str, status: JSON | None = None, **spec: Any) -> JSON:
    metadata = {"name": "demo", "namespace": "team", "generation": 2, "creationTimestamp": "2026-11-17T20:00:00Z"}
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def a_pod(name: str = "demo-head", role: str = "head", **status: Any) -> JSON:
    labels = {"ray.io/node-type": role, "ray.io/group": "small", "ray.io/cluster": "demo"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"phase": "Pending", **status}}


def seen(kind: str, item: JSON, *pods: JSON, events: tuple[JSON, ...] = ()) -> Any:
    clusters = (item,) if kind == "RayCluster" else ()
    return diagnose(Observed(kind, ObjectKey("team", "demo"), item, clusters, pods, events))


@pytest.mark.parametrize(
    ("kind", "status", "health"),
    [
        ("RayCluster", {}, Health.WAITING),
        ("RayCluster", {"state": "ready", "conditions": [condition("Ready", "True")]}, Health.READY),
        ("RayCluster", {"state": "ready", "conditions": [condition("Ready", "False")]}, Health.WAITING),
        ("RayCluster", {"state": "ready", "conditions": [condition("HeadPodReady", "True")]}, Health.READY),
        ("RayCluster", {"state": "ready", "conditions": [condition("HeadPodReady", "False")]}, Health.WAITING),
        ("RayCluster", {"state": "ready"}, Health.READY),
        ("RayCluster", {"state": "ready", "observedGeneration": 1}, Health.WAITING),
        (
            "RayCluster",
            {"state": "suspended", "conditions": [condition("RayClusterSuspended", "True")]},
            Health.SUSPENDED,
        ),
        ("RayCluster", {"conditions": [condition("RayClusterInvalid", "True", "no head")]}, Health.FAILED),
        ("RayJob", {}, Health.WAITING),
        ("RayJob", {"jobDeploymentStatus": "Initializing"}, Health.WAITING),
        ("RayJob", {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, Health.RUNNING),
        ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, Health.FINISHED),
        ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, Health.FAILED),
        ("RayJob", {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "boom"}, Health.FAILED),
        ("RayJob", {"jobDeploymentStatus": "Suspended"}, Health.SUSPENDED),
        ("RayService", {"conditions": [condition("Ready", "True")], "serviceStatus": "Running"}, Health.READY),
        ("RayService", {"conditions": [condition("Ready", "False", "initializing")]}, Health.WAITING),
        ("RayCronJob", {}, Health.READY),
    ],
)
def test_every_kind_has_a_health(kind: str, status: JSON, health: Health) -> None:
    assert seen(kind, an_object(kind, status)).health is health


def test_an_object_that_no_operator_looked_at_asks_for_one() -> None:
    assert any("no operator has looked at it" in reason for reason in seen("RayJob", an_object("RayJob")).waits_for)


def test_a_failed_job_says_its_reason_and_message() -> None:
    job = an_object("RayJob", {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "exit code 1"})
    assert seen("RayJob", job).waits_for[0] == "AppFailed: exit code 1"


def waiting(reason: str, message: str = "") -> JSON:
    return {
        "name": "ray",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": message}},
    }


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes have gpus"}]},
            "it has no node: 0/3 nodes have gpus",
        ),
        (
            {"containerStatuses": [waiting("ImagePullBackOff", "no such tag")]},
            "ray waits: ImagePullBackOff: no such tag",
        ),
        ({"initContainerStatuses": [waiting("CrashLoopBackOff")]}, "ray waits: CrashLoopBackOff"),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "name": "ray",
                        "ready": True,
                        "restartCount": 3,
                        "state": {"running": {}},
                        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    }
                ],
            },
            "ray restarted 3 times, the last one ended with exit code 137 (OOMKilled)",
        ),
        (
            {"containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]},
            "ray ended with exit code 2",
        ),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"}, "Evicted: disk pressure"),
        (
            {"phase": "Running", "containerStatuses": [{"name": "ray", "ready": False, "state": {"running": {}}}]},
            "ray runs and is not ready",
        ),
    ],
)
def test_a_pod_says_why_it_does_not_work(status: JSON, problem: str) -> None:
    shown = seen("RayCluster", an_object("RayCluster", {"state": ""}), a_pod(**status))
    assert shown.pods[0].problems == (problem,)
    assert f"pod demo-head: {problem}" in shown.waits_for
    assert problem in shown.summary()


def test_missing_workers_and_conditions_are_counted_and_put_in_words() -> None:
    said = [condition("HeadPodReady", "False", "containers with unready status: [ray]"), condition("Odd", "True")]
    shown = seen("RayCluster", an_object("RayCluster", {"desiredWorkerReplicas": 4, "conditions": said}))
    assert "0 of 4 workers are ready" in shown.waits_for
    assert shown.conditions[0].words == "the head pod is not ready: containers with unready status: [ray]"
    assert (shown.conditions[1].words, shown.conditions[1].is_trouble) == ("Odd is True", False)


def test_applications_of_serve_that_do_not_run_are_named() -> None:
    apps = {"llm": {"status": "DEPLOY_FAILED", "message": "no module named vllm"}, "ok": {"status": "RUNNING"}}
    service = an_object("RayService", {"activeServiceStatus": {"applicationStatuses": apps}})
    assert "Serve application llm is DEPLOY_FAILED: no module named vllm" in seen("RayService", service).waits_for


def test_events_are_in_order_and_of_both_apis() -> None:
    events = (
        {"reason": "Late", "note": "b", "eventTime": "2026-11-17T20:02:00Z", "regarding": {"kind": "Pod", "name": "x"}},
        {"reason": "Early", "message": "a", "lastTimestamp": "2026-11-17T20:01:00Z", "count": 3, "type": "Warning"},
    )
    shown = seen("RayCluster", an_object("RayCluster"), events=events).events
    assert [(event.reason, event.message, event.count) for event in shown] == [("Early", "a", 3), ("Late", "b", 1)]


def test_what_is_gone_is_said_to_be_gone() -> None:
    assert diagnose(Observed("RayJob", ObjectKey("team", "demo"), None)).health is Health.GONE
