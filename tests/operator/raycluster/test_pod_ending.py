"""How a pod ended, in words that its owner understands."""

from __future__ import annotations

import msgspec
import pytest

from raykeeper.api.meta import JSON, Object, ObjectMeta
from raykeeper.operator.raycluster.actions import DeletePod, Why
from raykeeper.operator.raycluster.pod import Pod, parse_pod


def a_pod(status: JSON) -> Pod:
    spec = {"restartPolicy": "Never", "containers": [{"name": "ray"}, {"name": "side"}]}
    raw = [msgspec.Raw(msgspec.json.encode(part)) for part in (spec, status)]
    return parse_pod(Object(ObjectMeta(name="head", namespace="n", uid="u"), *raw))


def ended(name: str, exit_code: int, **fields: str) -> JSON:
    return {"name": name, "state": {"terminated": {"exitCode": exit_code, **fields}}}


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (
            {"phase": "Failed", "containerStatuses": [ended("ray", 137, reason="OOMKilled")]},
            "container ray ended with exit code 137, OOMKilled",
        ),
        (
            {"phase": "Failed", "containerStatuses": [ended("ray", 0, reason="Completed"), ended("side", 2)]},
            "container side ended with exit code 2",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
            "Evicted, The node was low on resource: memory.",
        ),
        (
            {"phase": "Running", "containerStatuses": [ended("ray", 1, reason="Error", message="no GCS")]},
            "container ray ended with exit code 1, Error, no GCS",
        ),
        ({"phase": "Failed"}, ""),
        ({"phase": "Running", "containerStatuses": [ended("side", 1)]}, ""),
    ],
    ids=["out of memory", "who failed, not who ended well", "evicted", "Ray alone", "nobody knows", "has not ended"],
)
def test_the_ending_of_a_pod(status: JSON, ending: str) -> None:
    assert a_pod(status).ending == ending


def test_an_event_about_a_pod_that_ended_says_how() -> None:
    pod = a_pod({"phase": "Failed", "reason": "Evicted"})
    assert DeletePod(pod, Why.ENDED).explanation == "it has ended and will not be restarted (Evicted)"
    assert DeletePod(pod, Why.SUSPENDED).explanation == "the cluster is suspended"


@pytest.mark.parametrize(
    ("status", "is_up", "is_ready"),
    [
        ({"phase": "Running"}, True, False),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, True, True),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False, False),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "Unknown"}]}, False, False),
        ({"phase": "Pending"}, False, False),
        ({"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}, False, False),
    ],
)
def test_a_pod_that_runs_is_up_unless_somebody_says_that_it_is_not_ready(
    status: JSON, is_up: bool, is_ready: bool
) -> None:
    pod = a_pod(status)
    assert (pod.is_up, pod.is_ready) == (is_up, is_ready)
