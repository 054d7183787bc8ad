"""Helm installs the operator and a cluster on a real node, upgrades the operator with its CRDs, and removes both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bed.helm import helm
from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from e2e.own_image import OWN_IMAGE

CHARTS: Final = Path(__file__).parents[2] / "helm-chart"
REPOSITORY, _, TAG = OWN_IMAGE.partition(":")
OPERATOR: Final = (
    f"image.repository={REPOSITORY},image.tag={TAG},image.pullPolicy=Never,replicas=1,leaderElectionEnabled=false,"
    "metrics.enabled=false,resources.limits.cpu=500m,resources.limits.memory=256Mi"
)
CLUSTER: Final = (
    f"image.tag={RAY_VERSION},head.rayVersion={RAY_VERSION},head.resources.limits.cpu=1,head.resources.limits.memory=2Gi,"
    "worker.replicas=1,worker.resources.limits.cpu=1,worker.resources.limits.memory=1Gi"
)


class Helm:
    """Helm against the node's control plane, in one namespace."""

    def __init__(self, node: RealNode, namespace: str, folder: Path) -> None:
        self._node = node
        self._namespace = namespace
        self._folder = folder

    def __call__(self, *arguments: str) -> None:
        """Run one command. A failure shows what Helm said."""
        where = ["--kubeconfig", str(self._node.plane.admin_kubeconfig), "--namespace", self._namespace]
        homes = {name: str(self._folder) for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        done = subprocess.run([helm(), *arguments, *where], env=homes, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def run_helm(node_with_own_image: RealNode, node_namespace: str, tmp_path: Path) -> Iterator[Helm]:
    """Helm in a namespace of this test; what it installed for the whole cluster goes at the end."""
    made = Helm(node_with_own_image, node_namespace, tmp_path)
    yield made
    made("uninstall", "kuberay-operator", "--ignore-not-found")


def test_operator_and_cluster_are_installed_upgraded_and_removed(
    run_helm: Helm, node_with_own_image: RealNode, node_namespace: str
) -> None:
    plane = node_with_own_image.plane
    clusters = f"/apis/ray.io/v1/namespaces/{node_namespace}/rayclusters"
    run_helm("install", "kuberay-operator", str(CHARTS / "kuberay-operator"), "--set", OPERATOR, "--wait")
    run_helm("install", "ray-cluster", str(CHARTS / "ray-cluster"), "--set", CLUSTER)
    ready = ["--for=condition=RayClusterProvisioned", "--timeout=110s", "raycluster/ray-cluster-kuberay"]
    plane.kubectl("wait", f"--namespace={node_namespace}", *ready)

    run_helm("upgrade", "kuberay-operator", str(CHARTS / "kuberay-operator"), "--set", OPERATOR, "--wait")
    (definition,) = (
        item
        for item in plane.admin.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
        if item["metadata"]["name"] == "rayclusters.ray.io"
    )
    assert "raykeeper-crds" in {entry["manager"] for entry in definition["metadata"]["managedFields"]}
    jobs = plane.admin.get(f"/apis/batch/v1/namespaces/{node_namespace}/jobs")["items"]
    assert jobs == []

    run_helm("uninstall", "ray-cluster", "--wait")
    run_helm("uninstall", "kuberay-operator", "--wait")
    assert plane.admin.get(clusters)["items"] == []
