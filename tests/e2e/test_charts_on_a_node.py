"""Releases of our charts on a real node, by real Helm, with our own image: what is upgraded, kept and removed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.node.real_node import RealNode
from bed.node.settings import RAY_VERSION
from bed.rest import Json
from bed.waiting import wait_until
from e2e.guide_shell import GONE_SECONDS, GuideShell
from raykeeper.api import labels
from support.helm_releases import OUR_CHARTS, Helm

OPERATOR: Final = "kuberay-operator"
CLUSTER: Final = (
    f"image.tag={RAY_VERSION},head.rayVersion={RAY_VERSION},head.resources.limits.cpu=1,head.resources.limits.memory=2Gi,"
    "worker.replicas=1,worker.resources.limits.cpu=1,worker.resources.limits.memory=1Gi"
)
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RAY_CLUSTERS: Final = "rayclusters.ray.io"
REFUSED_WITHIN_SECONDS: Final = 120.0


@pytest.fixture
def shell(node_with_own_image: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    made = GuideShell(node_with_own_image.plane, tmp_path)
    yield made
    made.clean_up()


def definition(plane: ControlPlane) -> Json:
    return plane.admin.get(f"{DEFINITIONS}/{RAY_CLUSTERS}")


def fields(crd: Json) -> Any:
    """The fields of a RayCluster's spec."""
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def chart_of_an_older_version(folder: Path) -> Path:
    """The operator's chart, with a CRD that lacks a field and says that it is another."""
    copy = folder / OPERATOR
    subprocess.run(["cp", "--recursive", OUR_CHARTS / OPERATOR, copy], check=True)
    meta = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**meta, "version": "0.0.9"}))
    file = copy / "crds" / "ray.io_rayclusters.yaml"
    crd = yaml.load(file.read_bytes(), yaml.CSafeLoader)
    del fields(crd)["upgradeStrategy"]
    crd["metadata"]["annotations"]["raykeeper.io/crd-hash"] = "hold"
    file.write_text(yaml.dump(crd, Dumper=yaml.CSafeDumper))
    return copy


def remove_definitions(plane: ControlPlane) -> None:
    """As on a cluster that never saw Ray."""
    names = [f"crd/{kind}.ray.io" for kind in ("rayclusters", "rayjobs", "rayservices", "raycronjobs")]
    plane.kubectl("delete", "--ignore-not-found", "--wait", *names)


def uids(shell: GuideShell) -> dict[str, str]:
    pods = shell.pods(selector=f"{labels.IS_RAY_NODE}=yes")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def assert_upgrade_is_refused(helm: Helm, plane: ControlPlane) -> None:
    """The cluster has a definition that knows more: the release stays as it is, and the Job's log says why."""
    newer = definition(plane)
    fields(newer)["ofTheFuture"] = {"type": "string"}
    plane.admin.request("PUT", f"{DEFINITIONS}/{RAY_CLUSTERS}", newer)
    began = time.monotonic()
    refused = helm.attempt("upgrade", OPERATOR, OUR_CHARTS / OPERATOR)
    assert refused.returncode != 0
    assert "pre-upgrade hooks failed" in refused.stderr
    assert time.monotonic() - began < REFUSED_WITHIN_SECONDS, "it must not try again and again"
    said = plane.kubectl("logs", f"job/{OPERATOR}-crds", "--namespace=default")
    assert "stored objects would lose spec.ofTheFuture; use a newer raykeeper, or --force" in said
    assert "ofTheFuture" in fields(definition(plane))
    force = [sys.executable, "-m", "raykeeper.cli.main", "crds", "--apply", "--force"]
    subprocess.run([*force, f"--kubeconfig={plane.admin_kubeconfig}"], check=True, capture_output=True)


@pytest.mark.timeout(1200)
def test_the_life_of_a_release(shell: GuideShell, tmp_path: Path) -> None:
    helm, plane = shell.helm, shell.plane
    remove_definitions(plane)
    helm("install", OPERATOR, chart_of_an_older_version(tmp_path))
    shell.wait_for_deployment(OPERATOR)
    helm("install", "ray-cluster", OUR_CHARTS / "ray-cluster", "--set", CLUSTER)
    shell.wait_for_cluster("ray-cluster-kuberay")
    assert "upgradeStrategy" not in fields(definition(plane))
    pods = uids(shell)
    assert len(pods) == 2

    helm("upgrade", OPERATOR, OUR_CHARTS / OPERATOR)
    assert "upgradeStrategy" in fields(definition(plane)), "the Job in front of the upgrade brings the CRDs up to date"
    assert plane.admin.get("/apis/batch/v1/namespaces/default/jobs")["items"] == [], "and is gone afterwards"
    assert_upgrade_is_refused(helm, plane)

    helm("rollback", OPERATOR, "1")
    shell.wait_for_deployment(OPERATOR)
    assert "upgradeStrategy" in fields(definition(plane)), "definitions are never set back"

    helm("uninstall", OPERATOR, "--wait")
    shell.wait_for_cluster("ray-cluster-kuberay")
    assert uids(shell) == pods, "clusters outlive the operator"

    plane.admin.patch(f"{DEFINITIONS}/{RAY_CLUSTERS}", {"metadata": {"annotations": {"raykeeper.io/crd-hash": None}}})
    helm("install", OPERATOR, OUR_CHARTS / OPERATOR, "--set", "crds.keep=false")
    shell.wait_for_deployment(OPERATOR)
    annotations = definition(plane)["metadata"]["annotations"]
    assert "raykeeper.io/crd-hash" in annotations, "an installation that finds other definitions upgrades them too"
    assert uids(shell) == pods, "and the next operator takes them over"

    helm("uninstall", OPERATOR, "--wait")
    found = plane.admin.get(DEFINITIONS)["items"]
    assert not [item for item in found if item["spec"]["group"] == "ray.io"], "unless they were to go with the release"
    wait_until("the Ray pods are gone", lambda: not uids(shell), GONE_SECONDS)
    helm("uninstall", "ray-cluster", "--ignore-not-found")


def test_tokens_are_kept_over_upgrades(shell: GuideShell) -> None:
    helm, plane = shell.helm, shell.plane
    store = ["--set", "store.url=file:///tmp/history", "--set", "kubernetesFacts.enabled=false"]
    for chart, needed, key in (
        ("ray-history-server", store, "token"),
        ("kuberay-apiserver", [], "SECURITY_TOKEN"),
    ):

        def token(chart: str = chart, key: str = key) -> str:
            return str(plane.admin.get(f"/api/v1/namespaces/default/secrets/{chart}-token")["data"][key])

        helm("install", chart, OUR_CHARTS / chart, *needed)
        first = token()
        helm("upgrade", chart, OUR_CHARTS / chart, *needed, "--set", "commonLabels.team=a")
        assert token() == first
        helm("rollback", chart, "1")
        assert token() == first
        helm("uninstall", chart)
