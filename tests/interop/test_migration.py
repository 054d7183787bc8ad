"""Releases of KubeRay's own charts become releases of ours by `helm upgrade`, and back, and no Ray pod is touched."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.golang import module_folder
from bed.kuberay import VERSION, kuberay_on
from bed.kwok import Kwok
from raykeeper.cli.crds import crds
from support.helm_releases import OUR_CHARTS, Helm
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.taking_over import Stage

pytestmark = pytest.mark.interop

SYSTEM, TEAM = "ray-system", "team"
READY_SECONDS: Final = 90.0


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    """Private: both operators cover all namespaces, and the CRDs are KubeRay's at first."""
    Kwok(own_control_plane).up(nodes=2)
    for name in (SYSTEM, TEAM):
        make_namespace(own_control_plane, name)
    return own_control_plane


@pytest.fixture
async def stage(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Stage]:
    async with connected(plane.admin_kubeconfig) as kube:
        with kuberay_on(plane) as kuberay, operators_of(plane, tmp_path) as operators:
            yield Stage(plane, kube, TEAM, kuberay, operators)


async def ray_pods(stage: Stage) -> dict[str, str]:
    """The uids of the Ray pods by their names."""
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await stage.pods()}


GATES_OF_1_7: Final = (
    *("RayClusterStatusConditions", "RayJobDeletionPolicy", "RayMultiHostIndexing", "RayServiceIncrementalUpgrade"),
    *("RayCronJob", "RayClusterMTLS", "RayClusterNetworkPolicy", "RayClusterHistoryServer"),
)


def chart_in_the_shape_of_1_7(chart: Path, folder: Path) -> Path:
    """KubeRay's chart as it was released in 1.7: the Go proxy gives out 1.6.2, which makes the same objects."""
    copy = folder / "of-1.7" / chart.name
    shutil.copytree(chart, copy, copy_function=shutil.copyfile)
    meta = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**meta, "version": "1.7.0"}))
    values = yaml.safe_load((copy / "values.yaml").read_text())
    if chart.name == "kuberay-operator":
        values["image"]["tag"] = "v1.7.0"
        values["featureGates"] = [{"name": name, "enabled": number < 4} for number, name in enumerate(GATES_OF_1_7)]
    (copy / "values.yaml").write_text(yaml.safe_dump(values))
    return copy


async def test_a_helm_upgrade_from_kuberays_charts_and_back_touches_no_ray_pod(stage: Stage, tmp_path: Path) -> None:
    helm = Helm(stage.plane, tmp_path)

    async def run_helm(*words: str | Path) -> None:
        await asyncio.to_thread(helm, *words)

    theirs = await asyncio.to_thread(module_folder, "github.com/ray-project/kuberay", VERSION) / "helm-chart"
    system, team = ("--namespace", SYSTEM), ("--namespace", TEAM)
    for release, chart, where in (("kuberay-operator",) * 2 + (system,), ("raycluster", "ray-cluster", team)):
        await run_helm("install", release, chart_in_the_shape_of_1_7(theirs / chart, tmp_path), *where)
    kuberay = await stage.start_kuberay(elected=True)
    await stage.scene("raycluster-kuberay").becomes("ready", seconds=READY_SECONDS)
    before = await ray_pods(stage)
    assert len(before) == 2

    reused = await asyncio.to_thread(
        helm.attempt, "upgrade", "kuberay-operator", OUR_CHARTS / "kuberay-operator", *system, "--reuse-values"
    )
    assert "is KubeRay's own operator" in reused.stderr, "--reuse-values keeps the defaults of the former chart"
    await asyncio.to_thread(crds, [], "yaml", apply=True, kubeconfig=stage.plane.admin_kubeconfig, force=False)
    # The Job in front of the upgrade has just been done by hand: there are no real pods here.
    await run_helm("upgrade", "kuberay-operator", OUR_CHARTS / "kuberay-operator", *system, "--set=crds.enabled=false")
    await run_helm("upgrade", "raycluster", OUR_CHARTS / "ray-cluster", *team)
    ours = await stage.start_ours(elected=True)
    await asyncio.to_thread(kuberay.process.stop)
    await stage.has_looked(ours)
    assert await ray_pods(stage) == before

    await run_helm("rollback", "raycluster", "1", *team)
    await run_helm("rollback", "kuberay-operator", "1", *system)
    kuberay = await stage.start_kuberay(elected=True)
    assert await asyncio.to_thread(ours.stop) == 0
    await stage.has_looked(kuberay)
    assert await ray_pods(stage) == before
