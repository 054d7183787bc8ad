"""The metrics that KubeRay's Grafana dashboards show about RayJobs."""

from __future__ import annotations

import json

import msgspec
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import JSON, Object, ObjectMeta
from raykeeper.operator.rayjob.metrics import RayJobCollector

IDENTITY = {"name": "counter", "namespace": "ns", "uid": "job-uid"}


def registry_of(status: JSON, *, has_cluster: bool = False) -> CollectorRegistry:
    metadata = ObjectMeta(name="counter", namespace="ns", uid="job-uid")
    job = Object(metadata, status=msgspec.Raw(json.dumps(status).encode()))
    registry = CollectorRegistry()
    registry.register(RayJobCollector([job], lambda _: has_cluster))
    return registry


def test_a_job_is_counted_in_its_state() -> None:
    registry = registry_of({"jobDeploymentStatus": "Running"})
    assert registry.get_sample_value("kuberay_job_info", IDENTITY) == 1
    labels = IDENTITY | {"deployment_status": "Running"}
    assert registry.get_sample_value("kuberay_job_deployment_status", labels) == 1


def test_every_attempt_tells_how_long_it_took() -> None:
    attempt = {"startTime": "2026-11-16T12:00:00Z", "endTime": "2026-11-16T12:00:30Z"}
    status = {
        "jobDeploymentStatus": "Failed",
        "failed": 2,
        "startTime": "2026-11-16T12:01:00Z",
        "endTime": "2026-11-16T12:01:10Z",
        "failedAttempts": [attempt],
    }
    registry = registry_of(status)
    name = "kuberay_job_execution_duration_seconds"
    assert registry.get_sample_value(name, IDENTITY | {"job_deployment_status": "Retrying", "retry_count": "0"}) == 30
    assert registry.get_sample_value(name, IDENTITY | {"job_deployment_status": "Failed", "retry_count": "1"}) == 10


def test_a_cluster_that_outlives_its_job_is_counted() -> None:
    status = {"jobDeploymentStatus": "Complete", "rayClusterName": "counter-abcde"}
    labels = IDENTITY | {"ray_cluster": "counter-abcde"}
    name = "raykeeper_job_outlived_by_cluster"
    assert registry_of(status, has_cluster=True).get_sample_value(name, labels) == 1
    assert registry_of(status).get_sample_value(name, labels) == 0
