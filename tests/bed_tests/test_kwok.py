"""Fake nodes play pods as their annotations say, and can be lost and found."""

from __future__ import annotations

import uuid
from datetime import datetime

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from bed.kwok_stages import kwok_configuration
from bed.rest import Json
from bed.waiting import wait_until

CONTAINERS = [{"name": "main", "image": "anything"}]


class Pods:
    """Pods of one namespace: `make` them with annotations and look at what becomes of them."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.api = plane.admin
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    def make(self, name: str, node: str | None = None, **annotations: str) -> None:
        marks = {f"bed/{key.replace('_', '-')}": value for key, value in annotations.items()}
        spec: Json = {"containers": CONTAINERS} | ({"nodeName": node} if node else {})
        self.api.post(self.path, {"metadata": {"name": name, "annotations": marks}, "spec": spec})

    def get(self, name: str) -> Json:
        return self.api.get(f"{self.path}/{name}")

    def phase(self, name: str) -> str:
        return str(self.get(name)["status"]["phase"])

    def is_ready(self, name: str) -> bool:
        conditions = self.get(name)["status"].get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def is_gone(self, name: str) -> bool:
        return not self.api.answers(f"{self.path}/{name}")

    def wait_for(self, name: str, phase: str) -> None:
        wait_until(f"{name} {phase}", lambda: self.phase(name) == phase)

    def delete(self, name: str) -> None:
        self.api.delete(f"{self.path}/{name}")

    def annotate(self, name: str, **annotations: str | None) -> None:
        self.api.patch(
            f"{self.path}/{name}",
            {"metadata": {"annotations": {f"bed/{key}": value for key, value in annotations.items()}}},
        )


def seconds_until_started(pod: Json) -> float:
    started = datetime.fromisoformat(pod["status"]["startTime"])
    return (started - datetime.fromisoformat(pod["metadata"]["creationTimestamp"])).total_seconds()


@pytest.fixture
def pods(kwok: Kwok, control_plane: ControlPlane, namespace: str) -> Pods:
    return Pods(control_plane, namespace)


def test_the_configuration_is_valid_yaml_with_a_stage_for_each_behaviour() -> None:
    names = [document["metadata"]["name"] for document in yaml.safe_load_all(kwok_configuration())]
    assert names == ["kwok", "node-ready", "pod-ready", "pod-unready", "pod-complete", "pod-fail", "pod-delete"]


def test_a_pod_gets_a_node_an_address_and_is_ready(pods: Pods) -> None:
    pods.make("plain")
    wait_until("ready", lambda: pods.is_ready("plain"))
    status = pods.get("plain")["status"]
    assert status["podIP"].startswith("10.244.")
    assert status["containerStatuses"][0]["ready"] is True


def test_a_deleted_pod_is_gone(pods: Pods) -> None:
    pods.make("short-lived")
    pods.wait_for("short-lived", "Running")
    pods.delete("short-lived")
    wait_until("gone", lambda: pods.is_gone("short-lived"))


def test_pods_fail_wait_or_stay_unready_as_their_annotations_say(pods: Pods) -> None:
    pods.make("failing", fail="true")
    pods.make("held", hold="true")
    pods.make("unready", unready="true")
    pods.make("late", delay_ms="2000")
    pods.wait_for("failing", "Failed")
    pods.wait_for("unready", "Running")
    assert not pods.is_ready("unready")
    pods.wait_for("late", "Running")
    assert seconds_until_started(pods.get("late")) >= 1  # both times are whole seconds
    assert pods.get("failing")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
    assert pods.phase("held") == "Pending"
    pods.annotate("held", hold=None)
    pods.wait_for("held", "Running")


def test_a_stuck_pod_hangs_in_terminating_until_it_is_let_go(pods: Pods) -> None:
    pods.make("stuck", stuck="true")
    pods.make("other")
    pods.wait_for("stuck", "Running")
    pods.wait_for("other", "Running")
    pods.delete("stuck")
    pods.delete("other")
    wait_until("the other is gone", lambda: pods.is_gone("other"))
    assert "deletionTimestamp" in pods.get("stuck")["metadata"]
    pods.annotate("stuck", stuck=None)
    wait_until("gone", lambda: pods.is_gone("stuck"))


def test_a_job_completes_and_a_failing_one_fails(kwok: Kwok, control_plane: ControlPlane, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    def make(name: str, annotations: Json) -> None:
        template = {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": CONTAINERS},
        }
        body = {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": template}}
        control_plane.admin.post(jobs, body)

    def ended_as(name: str) -> set[str]:
        conditions = control_plane.admin.get(f"{jobs}/{name}")["status"].get("conditions", [])
        return {condition["type"] for condition in conditions if condition["status"] == "True"}

    make("good", {})
    make("bad", {"bed/fail": "true"})
    wait_until("good is complete", lambda: "Complete" in ended_as("good"))
    wait_until("bad has failed", lambda: "Failed" in ended_as("bad"))


def test_a_lost_node_is_unreachable_and_its_pods_hang_until_it_returns(pods: Pods, kwok: Kwok) -> None:
    node = f"lost-{uuid.uuid4().hex[:6]}"
    kwok.add_node(node, taints=[{"key": "lost", "effect": "NoSchedule"}])
    pods.make("marooned", node=node)
    pods.wait_for("marooned", "Running")
    kwok.lose_node(node)
    wait_until("pod not ready", lambda: not pods.is_ready("marooned"))
    pods.delete("marooned")
    assert "deletionTimestamp" in pods.get("marooned")["metadata"]
    assert not kwok.is_ready(node)
    kwok.return_node(node)
    wait_until("gone", lambda: pods.is_gone("marooned"))
    kwok.remove_node(node)
