"""The Job that cleans Redis reaches what the head reached, needs nothing of what is being deleted, and ends."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rayclusters.manifests import a_cluster
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.children.redis_cleanup import (
    deletion_timeout_seconds,
    desired_redis_cleanup_job,
    is_finished,
)
from support.golden import AssertGolden

GOLDEN = Path(__file__).parent / "golden" / "redis-cleanup-job.yaml"

CLUSTER = (
    a_cluster()
    .autoscaled()
    .with_spec(
        rayVersion="2.60.0",
        authOptions={"mode": "token"},
        gcsFaultToleranceOptions={"redisAddress": "redis:6379", "redisPassword": {"value": "x"}},
    )
)

HEAD_POD: JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "rc-head-abcde",
        "namespace": "default",
        "labels": {"ray.io/cluster": "rc", "ray.io/node-type": "head", "team": "ml"},
        "annotations": {"ray.io/ft-enabled": "true"},
        "ownerReferences": [{"kind": "RayCluster", "name": "rc", "uid": "u"}],
    },
    "spec": {
        "serviceAccountName": "rc",
        "restartPolicy": "Always",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [{"name": "shared-mem", "emptyDir": {"medium": "Memory"}}],
        "initContainers": [
            {"name": "wait-for-tls-ip-san", "image": "ray"},
            {"name": "ray-history-collector", "image": "collector", "restartPolicy": "Always"},
            {"name": "mine", "image": "busybox"},
        ],
        "containers": [
            {
                "name": "ray-head",
                "image": "rayproject/ray:2.60.0",
                "command": ["/bin/bash", "-c", "--"],
                "args": ["ray start --head"],
                "env": [
                    {"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"},
                    {"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
                    {"name": "RAY_external_storage_namespace", "value": "11111111"},
                    {"name": "RAY_redis_db_connect_retries", "value": "3"},
                    {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "rc", "key": "auth_token"}}},
                ],
                "ports": [{"name": "dashboard", "containerPort": 8265, "hostPort": 8265}],
                "livenessProbe": {"exec": {"command": ["true"]}},
                "readinessProbe": {"exec": {"command": ["true"]}},
                "startupProbe": {"exec": {"command": ["true"]}},
                "lifecycle": {"preStop": {"exec": {"command": ["ray", "stop"]}}},
                "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
                "volumeMounts": [{"name": "shared-mem", "mountPath": "/dev/shm"}],
            },
            {"name": "autoscaler", "image": "rayproject/ray:2.60.0"},
        ],
    },
}


def test_the_job_is_as_in_the_golden_file(assert_golden: AssertGolden) -> None:
    assert_golden(GOLDEN, desired_redis_cleanup_job(CLUSTER.build(), HEAD_POD))


def test_making_the_job_does_not_change_the_head_pod() -> None:
    head_pod = copy.deepcopy(HEAD_POD)
    desired_redis_cleanup_job(CLUSTER.build(), head_pod)
    assert head_pod == HEAD_POD


def test_the_job_keeps_an_account_that_the_user_chose() -> None:
    cluster = CLUSTER.with_head_pod(serviceAccountName="mine").build()
    head_pod = copy.deepcopy(HEAD_POD)
    head_pod["spec"]["serviceAccountName"] = "mine"
    job = desired_redis_cleanup_job(cluster, head_pod)
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


RECORDER = """
def cleanup_redis_storage(**arguments):
    import json
    print(json.dumps(arguments))
    return arguments["host"] != "broken"
"""
"""Stands where Ray has the function of that name, and tells how it was called."""


def run_program(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    module = folder / "ray" / "_private" / "gcs_utils.py"
    module.parent.mkdir(parents=True)
    module.write_text(RECORDER)
    pod = desired_redis_cleanup_job(CLUSTER.build(), HEAD_POD)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "RAY_external_storage_namespace": "ns",
    }
    command = container["command"] + container["args"]
    return subprocess.run(command, env=env | environment, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"RAY_REDIS_ADDRESS": "redis:6380"},
            {"host": "redis", "port": 6380, "password": "", "use_ssl": False},
        ),
        (
            {"RAY_REDIS_ADDRESS": "one:1,two:2", "REDIS_PASSWORD": "secret"},
            {"host": "one", "port": 1, "password": "secret", "use_ssl": False},
        ),
        (
            {"RAY_REDIS_ADDRESS": "rediss://redis"},
            {"host": "redis", "port": 6379, "password": "", "use_ssl": True},
        ),
        (
            {"RAY_REDIS_ADDRESS": "redis://me:p%40ss@redis:6379", "REDIS_USERNAME": ""},
            {"host": "redis", "port": 6379, "password": "p@ss", "use_ssl": False, "username": "me"},
        ),
        (
            {"RAY_REDIS_ADDRESS": "redis://me:old@redis:6379", "REDIS_USERNAME": "you", "REDIS_PASSWORD": "new"},
            {"host": "redis", "port": 6379, "password": "new", "use_ssl": False, "username": "you"},
        ),
    ],
)
def test_the_program_reaches_redis_as_the_head_does(
    environment: dict[str, str], expected: JSON, tmp_path: Path
) -> None:
    done = run_program(tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected | {"storage_namespace": "ns"}


def test_the_program_fails_when_keys_may_be_left(tmp_path: Path) -> None:
    assert run_program(tmp_path, RAY_REDIS_ADDRESS="broken:1").returncode == 1


@pytest.mark.parametrize(
    ("conditions", "finished"),
    [
        ([], False),
        ([{"type": "Complete", "status": "True"}], True),
        ([{"type": "Failed", "status": "True"}], True),
        ([{"type": "FailureTarget", "status": "True"}], True),
        ([{"type": "Complete", "status": "False"}], False),
        ([{"type": "Suspended", "status": "True"}], False),
    ],
)
def test_a_job_is_finished_when_it_ended_well_or_not(conditions: list[JSON], finished: bool) -> None:
    assert is_finished({"conditions": conditions}) == finished


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 300),
        ("60", 60),
        ("+60", 60),
        ("0", 300),
        ("-5", 300),
        ("5m", 300),
        ("1.5", 300),
        ("²", 300),
        ("9" * 18, 10**9),
        ("9" * 200_000, 300),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_deletion_timeout_is_a_positive_whole_number_or_five_minutes(text: str, seconds: int) -> None:
    cluster = a_cluster().annotated({"ray.io/gcs-ft-deletion-timeout": text}).build()
    assert deletion_timeout_seconds(cluster) == seconds
