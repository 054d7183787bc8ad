"""Probes of the Ray container, as KubeRay's table has them."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import head_pod, pod_defaults, ray, worker_pod
from raykeeper.api import labels
from raykeeper.api.meta import JSON

OLD_RAY = "2.52.1"
NEW_RAY = "2.53.0"
RAYLET = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
GCS = "wget --tries 1 -T 5 -q -O- http://localhost:8265/api/gcs_healthz | grep success"
SERVE = "wget --tries 1 -T 2 -q -O- http://localhost:8000/-/healthz | grep success"


def running(version: str) -> ClusterBuilder:
    return a_cluster().with_spec(rayVersion=version)


def for_service(version: str = NEW_RAY) -> ClusterBuilder:
    return running(version).labelled({labels.ORIGINATED_FROM_CRD: "RayService"})


def bash(*checks: str) -> JSON:
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}


def get(port: int = 52365) -> JSON:
    return {"httpGet": {"path": "/api/healthz", "port": port}}


def numbers(delay: int, timeout: int, failures: int) -> dict[str, int]:
    return {
        "initialDelaySeconds": delay,
        "periodSeconds": 5,
        "timeoutSeconds": timeout,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


@pytest.mark.parametrize(
    ("pod_of", "cluster", "liveness", "readiness"),
    [
        (head_pod, running(NEW_RAY), get() | numbers(30, 5, 120), get() | numbers(10, 5, 10)),
        (worker_pod, running(NEW_RAY), get() | numbers(30, 2, 120), get() | numbers(10, 2, 10)),
        (head_pod, running(OLD_RAY), bash(RAYLET, GCS) | numbers(30, 5, 120), bash(RAYLET, GCS) | numbers(10, 5, 10)),
        (worker_pod, running(OLD_RAY), bash(RAYLET) | numbers(30, 2, 120), bash(RAYLET) | numbers(10, 2, 10)),
        (head_pod, for_service(), get() | numbers(30, 5, 120), get() | numbers(10, 5, 10)),
        (worker_pod, for_service(), get() | numbers(30, 2, 120), bash(RAYLET, SERVE) | numbers(10, 2, 1)),
        (
            worker_pod,
            for_service(OLD_RAY),
            bash(RAYLET) | numbers(30, 2, 120),
            bash(RAYLET, SERVE) | numbers(10, 2, 1),
        ),
    ],
    ids=["head", "worker", "old head", "old worker", "head of a service", "worker of a service", "old, of a service"],
)
def test_the_probes_are(pod_of: Any, cluster: ClusterBuilder, liveness: JSON, readiness: JSON) -> None:
    container = ray(pod_of(cluster))
    assert container["livenessProbe"] == liveness
    assert container["readinessProbe"] == readiness


@pytest.mark.parametrize("version", ["2.53", "2.53.0rc1", "2.60.0", "v3.0"])
def test_one_http_request_is_enough_for_a_ray_that_answers_for_its_node(version: str) -> None:
    assert "httpGet" in ray(head_pod(running(version)))["livenessProbe"]


@pytest.mark.parametrize("version", ["", "nightly", "2.52.9", "2"])
def test_an_older_or_unknown_ray_is_asked_in_parts(version: str) -> None:
    assert "exec" in ray(head_pod(running(version)))["livenessProbe"]


def test_no_check_waits_longer_than_its_probe() -> None:
    for container in (ray(head_pod(running(OLD_RAY))), ray(worker_pod(for_service(OLD_RAY)))):
        for probe in (container["livenessProbe"], container["readinessProbe"]):
            text = probe["exec"]["command"][-1]
            waits = [int(part.split()[0]) for part in text.split("-T ")[1:]]
            assert max(waits) <= probe["timeoutSeconds"]


def test_ports_follow_the_options_of_ray() -> None:
    params = {"dashboard-agent-listen-port": "5000", "dashboard-port": "9000"}
    old, new = (ray(head_pod(running(version).with_head(rayStartParams=params))) for version in (OLD_RAY, NEW_RAY))
    assert ":5000/api/local_raylet_healthz" in old["livenessProbe"]["exec"]["command"][-1]
    assert ":9000/api/gcs_healthz" in old["livenessProbe"]["exec"]["command"][-1]
    assert new["livenessProbe"]["httpGet"]["port"] == 5000


@pytest.mark.parametrize("text", ["not-a-number", "-1", ""])
def test_ports_that_are_no_numbers_leave_the_probes_at_the_usual_ones(text: str) -> None:
    params = {"dashboard-agent-listen-port": text, "dashboard-port": text}
    old, new = (ray(head_pod(running(version).with_head(rayStartParams=params))) for version in (OLD_RAY, NEW_RAY))
    assert old["livenessProbe"]["exec"]["command"][-1] == f"{RAYLET} && {GCS}"
    assert new["livenessProbe"]["httpGet"]["port"] == 52365


def test_the_port_of_the_serve_proxy_is_the_one_called_serve() -> None:
    cluster = for_service().with_workers(container={"ports": [{"name": "serve", "containerPort": 8001}]})
    assert ":8001/-/healthz" in ray(worker_pod(cluster))["readinessProbe"]["exec"]["command"][-1]


def test_a_probe_of_the_user_stays_and_the_other_is_added() -> None:
    mine = {"exec": {"command": ["ls"]}}
    container = ray(head_pod(running(NEW_RAY).with_head_container(livenessProbe=mine)))
    assert container["livenessProbe"] == mine
    assert container["readinessProbe"] == get() | numbers(10, 5, 10)


def test_an_operator_may_leave_probes_out() -> None:
    container = ray(head_pod(a_cluster(), pod_defaults(injects_probes=False)))
    assert not {"livenessProbe", "readinessProbe"} & set(container)
