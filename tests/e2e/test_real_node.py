"""Pods on the real node are real: Ray runs in them, Services and DNS work, limits are enforced, nothing leaks out."""

from __future__ import annotations

import pytest

from bed.node.image import BUSYBOX_IMAGE, one_program_image
from bed.node.pause_program import pause_program
from bed.node.ray_layer import OFFLINE_PACKAGE
from bed.node.real_node import RealNode
from bed.node.settings import CLAIMED_CPUS, NODE_NAME
from e2e.cluster import Namespace, a_pod, a_ray_head, a_service, end_of, has_ended, is_ready, is_running, start_of

JOB = "import ray; ray.init(); print('answer', ray.get(ray.remote(lambda: 6 * 7).remote()))"


@pytest.fixture
def pods(real_node: RealNode, node_namespace: str) -> Namespace:
    """Where a test's pods live."""
    return Namespace(real_node.plane, node_namespace)


def test_a_ray_head_becomes_ready_and_runs_a_job_sent_to_its_service_by_another_pod(pods: Namespace) -> None:
    pods.create(a_ray_head("head"), a_service("head", 6379, 8265, 10001))
    pods.wait_for_pod("head", is_ready)
    submit = ["ray", "job", "submit", "--address", "http://head:8265", "--", "python", "-c", JOB]
    printed = pods.output_of(a_pod("driver", submit))
    assert "answer 42" in printed
    assert "succeeded" in printed


def test_a_pod_that_takes_more_memory_than_its_limit_is_killed(pods: Namespace) -> None:
    greedy = ["python", "-c", "bytearray(512 * 1024 * 1024)"]
    pods.create(a_pod("greedy", greedy, resources={"limits": {"memory": "64Mi"}}))
    end = end_of(pods.wait_for_pod("greedy", has_ended))
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)
    assert "done" in pods.output_of(a_pod("modest", ["python", "-c", "print('done')"]))


def test_a_service_without_a_ready_pod_refuses_at_once(pods: Namespace) -> None:
    pods.create(a_service("nobody", 80))
    ask = "curl --silent --max-time 10 http://nobody; echo code $?"
    assert "code 7" in pods.output_of(a_pod("caller", ["bash", "-c", ask]))  # 7 is refused, 28 would be silence


def test_pods_reach_the_api_server_as_their_service_account(pods: Namespace) -> None:
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    who = "apis/authentication.k8s.io/v1/selfsubjectreviews"
    ask = f"""curl --silent --cacert {account}/ca.crt --header "Authorization: Bearer $(cat {account}/token)" \
        --json '{{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}' https://kubernetes.default/{who}"""
    assert f"system:serviceaccount:{pods.name}:default" in pods.output_of(a_pod("caller", ["bash", "-c", ask]))


def test_pods_cannot_get_out_of_the_machine(pods: Namespace) -> None:
    # 192.0.2.0/24 is kept for documentation, so nobody is disturbed should a packet get out after all.
    ask = "curl --silent --max-time 2 http://192.0.2.1; echo code $?; curl --silent http://example.com; echo code $?"
    printed = pods.output_of(a_pod("caller", ["bash", "-c", ask], image=BUSYBOX_IMAGE))
    assert printed.split() == ["code", "28", "code", "6"]  # no answer; no such name


def test_a_pip_environment_installs_from_the_images_own_wheels(pods: Namespace) -> None:
    use = f"python -c 'import {OFFLINE_PACKAGE}; print({OFFLINE_PACKAGE}.GREETING)'"
    install = f"pip install --quiet --user {OFFLINE_PACKAGE} && {use}"
    assert "hello" in pods.output_of(a_pod("installer", ["bash", "-c", install]))


def test_the_node_claims_enough_processors_for_unmodified_samples(real_node: RealNode) -> None:
    node = real_node.plane.admin.get(f"/api/v1/nodes/{NODE_NAME}")
    assert node["status"]["allocatable"]["cpu"] == str(CLAIMED_CPUS)


def test_a_small_image_made_on_the_spot_runs(real_node: RealNode, pods: Namespace) -> None:
    name = "bed.local/one-program:1"
    real_node.import_image(one_program_image(name, {"/program": pause_program()}, entrypoint=["/program"]))
    pods.create(a_pod("small", ["/program"], image=name))
    pods.wait_for_pod("small", is_running)


def test_pods_survive_a_killed_kubelet_and_containerd(real_node: RealNode, pods: Namespace) -> None:
    pods.create(a_pod("survivor", ["sleep", "infinity"]))
    pods.wait_for_pod("survivor", is_running)
    started = start_of(pods.pod("survivor"))
    real_node.kubelet.kill()
    real_node.containerd.kill()
    real_node.up()
    assert "done" in pods.output_of(a_pod("newcomer", ["python", "-c", "print('done')"]))
    assert is_running(pods.pod("survivor"))
    assert start_of(pods.pod("survivor")) == started
