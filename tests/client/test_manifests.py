"""Manifests that scripts build: what they say, and what is refused before it is sent."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.client import (
    Head,
    InvalidManifest,
    WorkerGroup,
    check_manifest,
    cluster_spec,
    ray_cluster,
    ray_cron_job,
    ray_job,
    ray_service,
)
from raykeeper.client.kinds import CLUSTERS, CRON_JOBS, JOBS, resource_called
from raykeeper.client.manifests import version_of_image

HEAVY = ("aiohttp", "duckdb", "grpc", "starlette", "uvicorn", "opendal", "typer", "prometheus_client", "yaml")


def test_importing_the_client_imports_no_program_and_nothing_heavy() -> None:
    look = f"import sys, raykeeper.client; print([name for name in {HEAVY!r} if name in sys.modules])"
    programs = "print([name for name in sys.modules if name.startswith(('raykeeper.operator', 'raykeeper.history'))])"
    shown = subprocess.run([sys.executable, "-c", f"{look}; {programs}"], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["[]", "[]"]


def test_a_cluster_is_what_our_own_types_read() -> None:
    workers = [WorkerGroup(name="gpu", replicas=2, gpu=1, env={"A": "b"}, pod={"tolerations": [{"key": "gpu"}]})]
    manifest = ray_cluster("demo", image="rayproject/ray:2.60.0-py311", head=Head(cpu=2), workers=workers, history=True)
    cluster = msgspec.convert(manifest, RayCluster)
    assert cluster.spec.ray_version == "2.60.0"
    group = cluster.spec.worker_group_specs[0]
    assert (group.group_name, group.replicas, group.min_replicas, group.max_replicas) == ("gpu", 2, 2, 2)
    container = group.template["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert group.template["spec"]["tolerations"] == [{"key": "gpu"}]
    assert manifest["metadata"]["annotations"] == {"raykeeper.io/history": "true"}


def test_an_autoscaled_group_may_shrink_to_nothing() -> None:
    spec = cluster_spec(workers=[WorkerGroup(replicas=1, max_replicas=5)], autoscaling=True)
    assert spec["enableInTreeAutoscaling"] is True
    assert (spec["workerGroupSpecs"][0]["minReplicas"], spec["workerGroupSpecs"][0]["maxReplicas"]) == (0, 5)


def test_jobs_have_a_cluster_or_use_one() -> None:
    own = ray_job("train", "python train.py", ttl_seconds=60, retries=2)["spec"]
    assert (own["backoffLimit"], own["ttlSecondsAfterFinished"], own["shutdownAfterJobFinishes"]) == (2, 60, True)
    shared = ray_job("train", "python train.py", on_cluster="demo")["spec"]
    assert shared["clusterSelector"] == {"ray.io/cluster": "demo"}
    assert "rayClusterSpec" not in shared


def test_services_and_cron_jobs_are_built_as_well() -> None:
    job = ray_job("nightly", "python nightly.py")
    assert ray_cron_job("nightly", "0 3 * * *", job, timeZone="Etc/UTC")["spec"]["jobTemplate"] == job["spec"]
    assert ray_service("llm", "applications: []")["spec"]["serveConfigV2"] == "applications: []"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"workerGroupSpec": []}, "spec.workerGroupSpec: there is no such field, maybe 'workerGroupSpecs'?"),
        ({"suspend": "yes"}, "spec.suspend: 'yes' is not a boolean"),
        ({"rayVersion": 2}, "spec.rayVersion: 2 is not a string"),
        ({"workerGroupSpecs": [{"groupName": "a"}]}, "spec.workerGroupSpecs[0].template: it is missing"),
        ({"workerGroupSpecs": {}}, "spec.workerGroupSpecs: {} is not an array"),
        (
            {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "a", "imagePullpolicy": "Always"}]}}}},
            "spec.headGroupSpec.template.spec.containers[0].imagePullpolicy: there is no such field, maybe "
            "'imagePullPolicy'?",
        ),
    ],
)
def test_what_kubernetes_would_drop_or_refuse_is_named_by_its_place(change: JSON, problem: str) -> None:
    manifest = ray_cluster("demo")
    manifest["spec"].update(change)
    with pytest.raises(InvalidManifest) as raised:
        check_manifest(manifest)
    assert problem in raised.value.problems


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(InvalidManifest) as raised:
        check_manifest({"apiVersion": "ray.io/v2", "kind": "RayJob", "metadata": {}, "spec": {"suspend": 1, "x": 2}})
    assert len(raised.value.problems) == 4


@pytest.mark.parametrize("manifest", [{}, {"kind": "Pod"}, {"kind": None}, {"kind": "RayJob", "metadata": "x"}])
def test_what_is_no_ray_object_is_refused_and_not_a_bug(manifest: JSON) -> None:
    with pytest.raises(InvalidManifest):
        check_manifest(manifest)


def test_kinds_have_the_names_that_people_use() -> None:
    for word in ("RayJob", "rayjob", "rayjobs", "rayjobs.ray.io", "rayjobs.v1.ray.io", "job", "jobs"):
        assert resource_called(word) is JOBS
    assert resource_called("cluster") is CLUSTERS
    assert resource_called("cronjob") is CRON_JOBS
    assert resource_called("pod") is None
    assert resource_called("s") is None
    assert resource_called("") is None


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("rayproject/ray:2.52.0", "2.52.0"),
        ("registry:5000/ray:2.52.0-py311-gpu", "2.52.0"),
        ("rayproject/ray", ""),
        ("rayproject/ray:nightly", ""),
        ("registry:5000/ray", ""),
        ("ray@sha256:0123", ""),
    ],
)
def test_the_version_of_ray_is_read_from_the_tag(image: str, version: str) -> None:
    assert version_of_image(image) == version
