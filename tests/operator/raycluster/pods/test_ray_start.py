"""What `ray start` is told, and how the container comes to run it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import env, head_pod, pod_defaults, ray, worker_pod
from raykeeper.api import labels
from raykeeper.api.meta import JSON

FILE_LIMIT = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "
HEAD_START = (
    "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0"
    "  --metrics-export-port=8080 "
)
WORKER_START = (
    "ray start  --address=rc-head-svc.default.svc.cluster.local:6379  --block  --dashboard-agent-listen-port=52365"
    "  --metrics-export-port=8080 "
)
OVERWRITE = {labels.OVERWRITE_CONTAINER_CMD: "true"}


def options(pod: JSON) -> dict[str, str]:
    """The options of `ray start`, as the shell passes them."""
    words = shlex.split(env(ray(pod))["KUBERAY_GEN_RAY_START_CMD"])
    pairs = (word.removeprefix("--").partition("=") for word in words if word.startswith("--") and word != "--head")
    return {name: value for name, _, value in pairs}


def with_limits(**limits: Any) -> ClusterBuilder:
    return a_cluster().with_workers(container={"resources": {"limits": limits}})


def with_params(**params: str) -> ClusterBuilder:
    return a_cluster().with_workers(rayStartParams={name.replace("_", "-"): value for name, value in params.items()})


def test_a_head_starts_with_these_very_characters() -> None:
    limits = {"cpu": 1, "memory": "5Gi"}
    container = ray(head_pod(a_cluster().with_head_container(resources={"limits": limits})))

    command = (
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0"
        "  --memory=5368709120  --metrics-export-port=8080  --num-cpus=1 "
    )
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert container["args"] == [FILE_LIMIT + command]
    assert env(container)["KUBERAY_GEN_RAY_START_CMD"] == command


def test_a_worker_starts_with_these_very_characters() -> None:
    assert ray(worker_pod(a_cluster()))["args"] == [FILE_LIMIT + WORKER_START]


def test_a_login_shell_is_used_where_the_operator_says_so() -> None:
    container = ray(head_pod(a_cluster(), pod_defaults(uses_login_shell=True)))
    assert container["command"] == ["/bin/bash", "-cl", "--"]


def test_the_users_command_runs_before_ray() -> None:
    container = ray(head_pod(a_cluster().with_head_container(command=["echo one"], args=["two", "three"])))
    assert container["args"] == [f" echo one  two  three  && {FILE_LIMIT}{HEAD_START}"]


@pytest.mark.parametrize(
    "cluster",
    [
        a_cluster().annotated(OVERWRITE).with_head_container(command=["run"], args=["me"]),
        a_cluster().annotated({labels.OVERWRITE_CONTAINER_CMD: "TRUE"}).with_head_container(command=["run", "me"]),
        a_cluster().with_head_container(command=["/bin/sh", "-c"], args=["ray start --head --block"]),
        a_cluster().with_head_container(command=["ray", "start", "--head"]),
    ],
)
def test_a_user_who_starts_ray_alone_is_left_alone(cluster: ClusterBuilder) -> None:
    wanted = cluster.manifest["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    container = ray(head_pod(cluster))
    assert (container["command"], container.get("args")) == (wanted["command"], wanted.get("args"))
    assert env(container)["KUBERAY_GEN_RAY_START_CMD"] == HEAD_START


def test_an_overwritten_command_may_be_none_at_all() -> None:
    container = ray(head_pod(a_cluster().annotated(OVERWRITE)))
    assert "command" not in container
    assert "args" not in container


def test_a_template_may_ask_for_its_own_command_by_itself() -> None:
    head = {"metadata": {"annotations": OVERWRITE}, "spec": {"containers": [{"name": "r", "command": ["run"]}]}}
    assert ray(head_pod(a_cluster().with_head(template=head)))["command"] == ["run"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"log-color": "true"}, " --log-color=true "),
        ({"log-color": "FALSE"}, " --log-color=FALSE "),
        ({"include-dashboard": "false"}, " --include-dashboard=false "),
        ({"include-log-monitor": "true"}, " --include-log-monitor=true "),
        ({"no-redirect-output": "TRUE"}, " --no-redirect-output "),
        ({"temp-dir": "/tmp/x"}, " --temp-dir=/tmp/x "),
        ({"num-gpus": ""}, " --num-gpus= "),
    ],
)
def test_an_option_is_rendered(params: dict[str, str], expected: str) -> None:
    command = env(ray(head_pod(a_cluster().with_head(rayStartParams=params))))["KUBERAY_GEN_RAY_START_CMD"]
    assert expected in command


def test_a_switch_that_is_off_is_left_out() -> None:
    assert "disable-usage-stats" not in options(worker_pod(with_params(disable_usage_stats="False")))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("address", "elsewhere:1"),
        ("metrics-export-port", "9999"),
        ("dashboard-agent-listen-port", "5000"),
        ("num-cpus", "0"),
        ("memory", "7"),
        ("num-gpus", "9"),
        ("object-store-memory", "100"),
    ],
)
def test_what_the_user_sets_is_kept(name: str, value: str) -> None:
    limits = {"cpu": 4, "memory": "1Gi", "nvidia.com/gpu": 1}
    cluster = a_cluster().with_workers(rayStartParams={name: value}, container={"resources": {"limits": limits}})
    assert options(worker_pod(cluster))[name] == value


def test_ray_stays_in_the_foreground_whatever_the_user_says() -> None:
    assert options(worker_pod(with_params(block="false")))["block"] == ""


def test_the_object_store_is_sized_by_ray() -> None:
    assert "object-store-memory" not in options(worker_pod(with_limits(memory="8Gi")))


def test_the_heads_port_is_everybodys() -> None:
    cluster = a_cluster().with_head(rayStartParams={"port": "6380"})
    assert options(head_pod(cluster))["port"] == "6380"
    assert options(worker_pod(cluster))["address"] == "rc-head-svc.default.svc.cluster.local:6380"


def test_an_autoscaled_head_has_no_monitor_of_its_own() -> None:
    cluster = a_cluster().with_head(rayStartParams={"no-monitor": "false"})
    assert "no-monitor" in options(head_pod(cluster.autoscaled()))
    assert "no-monitor" not in options(worker_pod(cluster.autoscaled()))
    assert "no-monitor" not in options(head_pod(cluster))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"cpu": "1500m"}}, {"num-cpus": "2"}),
        ({"limits": {"cpu": 3}, "requests": {"cpu": 1}}, {"num-cpus": "3"}),
        ({"requests": {"cpu": "250m"}}, {"num-cpus": "1"}),
        ({"limits": {"cpu": 0}, "requests": {"cpu": 2}}, {"num-cpus": "2"}),
        ({"limits": {"memory": "1G"}}, {"memory": "1000000000"}),
        ({"requests": {"memory": "1G"}}, {}),
        ({"limits": {"cpu": 0, "memory": 0}}, {}),
        ({"limits": {"cpu": "nonsense"}}, {}),
        ({"limits": {"nvidia.com/gpu": 2}}, {"num-gpus": "2"}),
        ({"limits": {"nvidia.com/gpu": 2, "amd.com/gpu": 1}}, {"num-gpus": "1"}),
        ({"limits": {"nvidia.com/gpu": 2, "amd.com/gpu": 0}}, {"num-gpus": "2"}),
        ({"limits": {"nvidia.com/mig-1g.5gb": 3}}, {"num-gpus": "3"}),
        ({"limits": {"nvidia.com/mig-1g.5gb.me": 3}}, {"num-gpus": "3"}),
        ({"limits": {"nvidia.com/mig-1c.3g.20gb": 2}}, {"num-gpus": "2"}),
        ({"limits": {"my/GPU": 3, "gpu.intel.com/i915": 1}}, {}),
        ({"requests": {"nvidia.com/gpu": 2}}, {}),
        ({"limits": {"google.com/tpu": 4}}, {"resources": '{"TPU":4}'}),
        ({"limits": {"aws.amazon.com/neuroncore": 2}}, {"resources": '{"neuron_cores":2}'}),
        ({"limits": {"aws.amazon.com/neuroncore": 2, "google.com/tpu": 4}}, {"resources": '{"neuron_cores":2}'}),
        ({"limits": {"aws.amazon.com/neuroncore": 0, "google.com/tpu": 4}}, {"resources": '{"TPU":4}'}),
        ({"limits": {"huawei.com/Ascend910": 8}}, {"resources": '{"NPU":8}'}),
        ({"limits": {"huawei.com/Ascend910B": 1, "huawei.com/Ascend910B-memory": 2000}}, {"resources": '{"NPU":1}'}),
        ({"limits": {"habana.ai/gaudi": 8}}, {"resources": '{"HPU":8}'}),
    ],
)
def test_ray_is_told_what_its_container_has(resources: JSON, expected: dict[str, str]) -> None:
    pod = worker_pod(a_cluster().with_workers(container={"resources": resources}))
    assert {
        name: value for name, value in options(pod).items() if name in ("num-cpus", "memory", "num-gpus", "resources")
    } == expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("'{\"b\": 2}'", '{"TPU":4,"b":2}'),
        ('{"b": 1.5, "c": 1e3}', '{"TPU":4,"b":1.5,"c":1000}'),
        ('"{\\"b\\": 2}"', '{"TPU":4,"b":2}'),
        ('"{"b": 2}"', '{"TPU":4,"b":2}'),
        (' `{"b": 2}` ', '{"TPU":4,"b":2}'),
        ("", '{"TPU":4}'),
        ("'{\"NPU\": 1}'", '{"NPU": 1}'),
        ("'{\"TPU\": 1}'", '{"TPU": 1}'),
        ("'{\"neuron_cores\": 1}'", '{"neuron_cores": 1}'),
        ("'{broken'", "{broken"),
        ("'[1]'", "[1]"),
        ('"unbalanced', None),
    ],
)
def test_accelerators_are_added_to_the_users_resources_in_every_spelling(spelling: str, expected: str | None) -> None:
    cluster = a_cluster().with_workers(
        rayStartParams={"resources": spelling}, container={"resources": {"limits": {"google.com/tpu": 4}}}
    )
    command = env(ray(worker_pod(cluster)))["KUBERAY_GEN_RAY_START_CMD"]
    if expected is None:
        assert f" --resources={spelling} " in command
    else:
        assert options(worker_pod(cluster))["resources"] == expected


def test_gpus_are_told_also_when_the_users_resources_cannot_be_read() -> None:
    cluster = a_cluster().with_workers(
        rayStartParams={"resources": "'{broken'"}, container={"resources": {"limits": {"nvidia.com/gpu": 2}}}
    )
    assert options(worker_pod(cluster))["num-gpus"] == "2"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"CPU": "1500m"}, {"num-cpus": "2"}),
        ({"cpu": "2", "Memory": "1.5Gi"}, {"num-cpus": "2", "memory": "1610612736"}),
        ({"GPU": "1"}, {"num-gpus": "1"}),
        ({"nvidia.com/gpu": "3", "nvidia.com/mig-1g.5gb": "1"}, {"num-gpus": "3"}),
        ({"Custom": "500m", "b": "2", "a": "1.5"}, {"resources": '{"Custom":0.5,"a":1.5,"b":2}'}),
        ({"bad": "nonsense"}, {}),
        ({}, {}),
    ],
)
def test_a_groups_resources_become_options(resources: dict[str, str], expected: dict[str, str]) -> None:
    pod = worker_pod(a_cluster().with_workers(resources=resources))
    assert {
        name: value for name, value in options(pod).items() if name in ("num-cpus", "memory", "num-gpus", "resources")
    } == expected


def test_a_groups_resources_win_over_its_container_and_never_touch_the_pod() -> None:
    limits = {"cpu": 4, "memory": "4Gi", "google.com/tpu": 4}
    pod = head_pod(
        a_cluster().with_head(resources={"CPU": "1", "Custom": "2"}).with_head_container(resources={"limits": limits})
    )
    assert options(pod)["num-cpus"] == "1"
    assert options(pod)["resources"] == '{"Custom":2,"TPU":4}'
    assert ray(pod)["resources"] == {"limits": limits}


def test_labels_of_the_ray_node_are_sorted() -> None:
    pod = worker_pod(a_cluster().with_workers(labels={"z": "1", "ray.io/region": "r", "a": "2"}))
    assert options(pod)["labels"] == "a=2,ray.io/region=r,z=1"
