"""The commands of the guide to the charts, as users type them, on a real node: they install, and do what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
import yaml

from bed.crds import install_monitoring_crds
from bed.fixtures import make_namespace, remove_namespace
from bed.node.image import ray_image
from bed.node.real_node import RealNode
from bed.node.settings import NODE_NAME
from bed.rest import Json
from bed.schedulers import install_scheduler_crds, stand_in
from bed.waiting import wait_until
from e2e import helm_guide
from e2e.cluster import is_ready
from e2e.guide_shell import READY_SECONDS, GuideShell
from raykeeper.api import labels

pytestmark = pytest.mark.soak  # a dozen installations in a row; test_charts_on_a_node.py has the life of one

OPERATOR: Final = "kuberay-operator"
RAY: Final = "2.52.0"
"""The default of the chart ray-cluster."""
RAY_IMAGES: Final = (f"rayproject/ray:{RAY}", f"rayproject/ray:{RAY}-py310-gpu")
GPUS: Final = {"nvidia.com/gpu": "4"}


@pytest.fixture
def shell(node_with_own_image: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    """The guide's shell, in a cluster that knows the kinds of Prometheus' operator and of the batch schedulers."""
    install_monitoring_crds(node_with_own_image.plane)
    install_scheduler_crds(node_with_own_image.plane)
    made = GuideShell(node_with_own_image.plane, tmp_path)
    yield made
    made.clean_up()


@pytest.fixture
def shell_with_ray(shell: GuideShell, real_node: RealNode, imported: set[str]) -> GuideShell:
    """The same on a node that has the image of Ray that the commands name."""
    if RAY not in imported:
        real_node.import_image(ray_image(RAY, *RAY_IMAGES))
        imported.add(RAY)
    return shell


@pytest.fixture
def namespaces(shell: GuideShell, request: pytest.FixtureRequest) -> Iterator[Sequence[str]]:
    """Namespaces that a block takes for granted, or makes itself; gone afterwards."""
    wanted: Sequence[str] = request.param
    yield wanted
    shell.clean_up()
    for name in wanted:
        remove_namespace(shell.plane, name)


def arguments(deployment: Json) -> list[str]:
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


def groups(shell: GuideShell, namespace: str = "default") -> dict[str, int]:
    """How many ready Ray pods each group has."""
    counts: dict[str, int] = {}
    for pod in shell.pods(namespace, f"{labels.IS_RAY_NODE}=yes"):
        assert is_ready(pod), pod["metadata"]["name"]
        group = pod["metadata"]["labels"][labels.GROUP]
        counts[group] = counts.get(group, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("block", "argument"),
    [
        (helm_guide.FEATURE_GATES, "--feature-gates=RayJobDeletionPolicy=true"),
        (helm_guide.VOLCANO, "--batch-scheduler=volcano"),
        (helm_guide.YUNIKORN, "--batch-scheduler=yunikorn"),
        (helm_guide.SCHEDULER_PLUGINS, "--batch-scheduler=scheduler-plugins"),
        (helm_guide.KAI_SCHEDULER, "--batch-scheduler=kai-scheduler"),
        (helm_guide.CLUSTER_WIDE, "--enable-leader-election=true"),
    ],
    ids=("5.1", "5.2-volcano", "5.2-yunikorn", "5.2-scheduler-plugins", "5.2-kai", "5.3-cluster-wide"),
)
def test_an_operator_with_these_values_becomes_ready(block: str, argument: str, shell: GuideShell) -> None:
    shell.run(block)
    deployment = shell.wait_for_deployment(OPERATOR)
    assert argument in arguments(deployment)
    (pod,) = shell.pods(selector=f"app.kubernetes.io/name={OPERATOR}")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize("namespaces", [("ray-system", "ray-ns1", "ray-ns2")], indirect=True, ids=["5.3-namespaces"])
def test_an_operator_for_some_namespaces_has_a_role_in_each(shell: GuideShell, namespaces: Sequence[str]) -> None:
    for name in namespaces:
        make_namespace(shell.plane, name)
    shell.run(helm_guide.SOME_NAMESPACES)
    assert "ray-ns1,ray-ns2" in arguments(shell.wait_for_deployment(OPERATOR, "ray-system"))
    roles = shell.plane.admin.get("/apis/rbac.authorization.k8s.io/v1/roles")["items"]
    found = {item["metadata"]["namespace"] for item in roles if item["metadata"]["name"] == OPERATOR}
    assert found == {"ray-ns1", "ray-ns2"}


def test_of_three_replicas_one_leads_and_another_takes_over(shell: GuideShell) -> None:
    """6.1."""
    shell.run(helm_guide.STANDBY)
    shell.wait_for_deployment(OPERATOR)

    def holder() -> str:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/ray-operator-leader"
        return str(shell.plane.admin.get(path)["spec"]["holderIdentity"] or "").partition("_")[0]

    pods = {pod["metadata"]["name"] for pod in shell.pods(selector=f"app.kubernetes.io/name={OPERATOR}")}
    assert len(pods) == 3
    first = wait_until("a leader", holder, READY_SECONDS)
    assert first in pods
    shell.plane.kubectl("delete", "pod", first, "--grace-period=0", "--force")
    wait_until("another leader", lambda: holder() not in ("", first), READY_SECONDS)


@pytest.mark.parametrize("namespaces", [("monitoring",)], indirect=True, ids=["6.3"])
def test_the_service_monitor_stands_where_prometheus_looks(shell: GuideShell, namespaces: Sequence[str]) -> None:
    make_namespace(shell.plane, *namespaces)
    shell.run(helm_guide.MONITORING)
    path = f"/apis/monitoring.coreos.com/v1/namespaces/monitoring/servicemonitors/{OPERATOR}"
    (endpoint,) = shell.plane.admin.get(path)["spec"]["endpoints"]
    assert endpoint == {"path": "/metrics", "targetPort": "http", "interval": "30s", "honorLabels": True}
    shell.wait_for_deployment(OPERATOR)


def test_a_development_cluster_becomes_ready_with_the_least_resources(shell_with_ray: GuideShell) -> None:
    """7.2."""
    shell = shell_with_ray
    shell.run(helm_guide.DEVELOPMENT)
    shell.wait_for_deployment(OPERATOR)
    shell.wait_for_cluster("ray-cluster-kuberay")
    assert groups(shell) == {labels.HEAD_GROUP: 1, "workergroup": 1}


@pytest.mark.parametrize("namespaces", [("ray-system", "ray-team-a", "ray-team-b")], indirect=True, ids=["7.3"])
def test_a_team_gets_its_cluster_in_its_own_namespace(shell_with_ray: GuideShell, namespaces: Sequence[str]) -> None:
    shell = shell_with_ray
    shell.run(helm_guide.TEAMS)
    shell.wait_for_deployment(OPERATOR, "ray-system")
    cluster = shell.wait_for_cluster("ray-cluster-team-a-kuberay", "ray-team-a")
    assert groups(shell, "ray-team-a") == {labels.HEAD_GROUP: 1, "workergroup": 3}
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]
    assert head["requests"] == head["limits"], "KubeRay's chart asks for more than its limit here"
    assert cluster["spec"]["workerGroupSpecs"][0]["maxReplicas"] == 10


def test_a_cluster_with_gpus_runs_under_a_batch_scheduler(shell_with_ray: GuideShell) -> None:
    """7.4. Volcano's place is taken by a kube-scheduler of that name, the GPUs are the node's word."""
    shell = shell_with_ray
    claim = {"status": {"capacity": GPUS, "allocatable": GPUS}}
    shell.plane.admin.patch(f"/api/v1/nodes/{NODE_NAME}/status", claim)
    scheduler = stand_in(shell.plane, shell.folder)
    scheduler.start()
    try:
        shell.run(helm_guide.GPUS)
        shell.wait_for_deployment(OPERATOR)
        shell.wait_for_cluster("ray-gpu-cluster-kuberay")
        assert groups(shell) == {labels.HEAD_GROUP: 1, "cpu-workers": 2, "gpuWorkers": 1}
        (gpu,) = shell.pods(selector=f"{labels.GROUP}=gpuWorkers")
        assert gpu["spec"]["schedulerName"] == "volcano"
        assert "--num-gpus=1" in str(gpu["spec"]["containers"][0])
        shell.clean_up()
    finally:
        scheduler.kill()


@pytest.mark.parametrize("namespaces", [("ray-system", "tenant-a", "tenant-b", "tenant-c")], indirect=True, ids=["7.5"])
def test_tenants_get_an_operator_and_an_api_server(shell: GuideShell, namespaces: Sequence[str]) -> None:
    for name in namespaces:
        make_namespace(shell.plane, name)
    shell.run(helm_guide.TENANTS)
    deployment = shell.wait_for_deployment(OPERATOR, "ray-system")
    assert {"--reconcile-concurrency=4", "--qps=200", "--burst=400"} <= set(arguments(deployment))
    assert deployment["spec"]["template"]["spec"]["priorityClassName"] == "system-cluster-critical"
    ingress = shell.plane.admin.get("/apis/networking.k8s.io/v1/namespaces/ray-system/ingresses/kuberay-apiserver")
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "ray-api.example.com"
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "kuberay-apiserver-service", "port": {"number": 8888}}


def test_a_cluster_with_redis_survives_its_head(shell_with_ray: GuideShell) -> None:
    """7.6, with the operator of 5.3."""
    shell = shell_with_ray
    shell.run(helm_guide.CLUSTER_WIDE)
    shell.run(helm_guide.FAULT_TOLERANCE)
    shell.wait_for_deployment(OPERATOR)
    shell.wait_for_cluster("ray-ft-cluster-kuberay")
    assert groups(shell) == {labels.HEAD_GROUP: 1, "workergroup": 3}
    workers = {pod["metadata"]["uid"] for pod in shell.pods(selector=f"{labels.GROUP}=workergroup")}
    (head,) = shell.pods(selector=f"{labels.GROUP}={labels.HEAD_GROUP}")
    shell.plane.kubectl("delete", "pod", head["metadata"]["name"], "--grace-period=0", "--force")

    def another() -> bool:
        heads = shell.pods(selector=f"{labels.GROUP}={labels.HEAD_GROUP}")
        return [pod["metadata"]["uid"] != head["metadata"]["uid"] and is_ready(pod) for pod in heads] == [True]

    wait_until("another head", another, READY_SECONDS)
    shell.wait_for_cluster("ray-ft-cluster-kuberay")
    assert {pod["metadata"]["uid"] for pod in shell.pods(selector=f"{labels.GROUP}=workergroup")} == workers


RUNTIME_CLASS: Final = """
worker:
  template:
    spec:
      runtimeClassName: nvidia
"""
"""The values file of KubeRay's issue 3793, which its chart ignored without a word."""


def test_a_runtime_class_in_the_template_reaches_the_pods(shell_with_ray: GuideShell) -> None:
    shell = shell_with_ray
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "runc",
    }
    shell.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(runtime))
    (shell.folder / "values.yaml").write_text(RUNTIME_CLASS)
    shell.run(helm_guide.CLUSTER_WIDE)
    shell.run(f"helm install gpu kuberay/ray-cluster --values {shell.folder}/values.yaml")
    shell.wait_for_cluster("gpu-kuberay")
    (worker,) = shell.pods(selector=f"{labels.GROUP}=workergroup")
    assert worker["spec"]["runtimeClassName"] == "nvidia"
    assert is_ready(worker)
