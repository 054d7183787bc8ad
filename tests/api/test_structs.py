"""The types of `ray.io` read what the API server sends, and write a status as KubeRay does."""

from __future__ import annotations

import msgspec
import pytest

from raykeeper.api.conditions import Condition, find_condition, is_true
from raykeeper.api.meta import Object, ObjectKey
from raykeeper.api.raycluster import HeadInfo, RayCluster, RayClusterStatus
from raykeeper.api.raycronjob import RayCronJob
from raykeeper.api.rayjob import RayJob
from raykeeper.api.rayservice import RayService
from raykeeper.api.structs import json_name

HEAD_ONLY = {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head"}]}}}}


def cached(spec: object, **parts: object) -> Object:
    """An object as a cache holds it."""
    body = {"metadata": {"name": "mine", "namespace": "team"}, "spec": spec, **parts}
    return msgspec.json.decode(msgspec.json.encode(body), type=Object)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("pod_ip", "podIP"),
        ("desired_cpu", "desiredCPU"),
        ("dashboard_url", "dashboardURL"),
        ("runtime_env_yaml", "runtimeEnvYAML"),
        ("enable_k8s_token_auth", "enableK8sTokenAuth"),
        ("entrypoint_num_cpus", "entrypointNumCpus"),
        ("ttl_seconds_after_finished", "ttlSecondsAfterFinished"),
        ("job_id", "jobId"),
        ("state", "state"),
    ],
)
def test_a_field_is_spelled_in_json_as_kuberay_spells_it(field: str, name: str) -> None:
    assert json_name(field) == name


def test_a_cached_object_is_read_as_a_cluster_with_defaults_filled_in() -> None:
    group = {"groupName": "gpu", "template": {"spec": {}}}
    cluster = RayCluster.from_object(cached(HEAD_ONLY | {"workerGroupSpecs": [group]}, status={"state": "ready"}))
    assert cluster.key == ObjectKey("team", "mine")
    assert cluster.spec.head_group_spec.template == HEAD_ONLY["headGroupSpec"]["template"]
    assert cluster.spec.worker_group_specs[0].max_replicas == 2147483647
    assert cluster.status.state == "ready"


def test_an_object_without_a_status_has_an_empty_one() -> None:
    assert RayCluster.from_object(cached(HEAD_ONLY)).status == RayClusterStatus()


def test_two_reads_share_nothing_that_could_be_changed() -> None:
    item = cached(HEAD_ONLY)
    first, second = RayCluster.from_object(item), RayCluster.from_object(item)
    first.spec.head_group_spec.template["spec"]["containers"].clear()
    assert second.spec.head_group_spec.template == HEAD_ONLY["headGroupSpec"]["template"]


def test_fields_of_a_newer_version_are_ignored() -> None:
    newer = HEAD_ONLY | {"idleTerminationOptions": {"seconds": 5}}
    assert RayCluster.from_object(cached(newer)) == RayCluster.from_object(cached(HEAD_ONLY))


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({}, "missing required field `headGroupSpec`"),
        (
            HEAD_ONLY | {"upgradeStrategy": {"type": "Rolling"}},
            r"Invalid enum value 'Rolling' - at `\$.upgradeStrategy.type`",
        ),
        (HEAD_ONLY | {"workerGroupSpecs": "none"}, r"Expected `array`, got `str` - at `\$.workerGroupSpecs`"),
    ],
)
def test_a_wrong_spec_is_refused_by_the_name_of_its_field(spec: object, complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=complaint):
        RayCluster.from_object(cached(spec))


def test_an_object_without_a_spec_is_refused_where_one_is_needed() -> None:
    bare = Object(cached({}).metadata)
    assert RayJob.from_object(bare).spec.submission_mode == "K8sJobMode"
    for kind in (RayCluster, RayService, RayCronJob):
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            kind.from_object(bare)


def test_the_other_kinds_are_read_from_cached_objects() -> None:
    job = RayJob.from_object(cached({"entrypoint": "python a.py", "entrypointNumCpus": 1, "runtimeEnvYAML": "pip: []"}))
    assert (job.spec.entrypoint, job.spec.entrypoint_num_cpus, job.spec.runtime_env_yaml) == (
        "python a.py",
        1.0,
        "pip: []",
    )
    service = RayService.from_object(cached({"rayClusterConfig": HEAD_ONLY, "serveConfigV2": "applications: []"}))
    assert service.spec.serve_config_v2 == "applications: []"
    cron_job = RayCronJob.from_object(cached({"schedule": "@daily", "jobTemplate": {"entrypoint": "ls"}}))
    assert cron_job.spec.job_template.entrypoint == "ls"


def test_a_status_is_written_without_what_says_nothing() -> None:
    status = RayClusterStatus(state="ready", desired_cpu="0", head=HeadInfo(pod_ip="10.0.0.1"))
    assert msgspec.to_builtins(status) == {"state": "ready", "desiredCPU": "0", "head": {"podIP": "10.0.0.1"}}


def test_a_condition_is_written_whole_even_without_a_message() -> None:
    condition = Condition("HeadPodReady", "True", "HeadPodRunningAndReady", "", "2026-01-01T00:00:00Z")
    assert msgspec.to_builtins(condition) == {
        "type": "HeadPodReady",
        "status": "True",
        "reason": "HeadPodRunningAndReady",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_a_condition_is_found_by_its_type() -> None:
    ready = Condition("Ready", "True", "Because", "", "2026-01-01T00:00:00Z")
    failed = Condition("Failed", "False", "Because", "", "2026-01-01T00:00:00Z")
    assert find_condition((ready, failed), "Failed") is failed
    assert is_true((ready, failed), "Ready")
    assert not is_true((ready, failed), "Failed")
    assert not is_true((ready, failed), "Suspended")
