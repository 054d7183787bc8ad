"""Releases of KubeRay's own charts become releases of ours by `helm upgrade`, and back, and no Ray pod is touched."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.golang import module_folder
from bed.helm import helm
from bed.kuberay import VERSION, kuberay_on
from bed.kwok import Kwok
from raykeeper.cli.crds import crds
from support.helm_charts import ROOT
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.taking_over import Stage

pytestmark = pytest.mark.interop

OURS: Final = ROOT / "helm-chart"
SYSTEM, TEAM = "ray-system", "team"
READY_SECONDS: Final = 90.0


class Helm:
    """Helm against one control plane, with a home of its own."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._kubeconfig = plane.admin_kubeconfig
        self._homes = {name: str(folder) for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}

    async def __call__(self, *words: str | Path) -> None:
        await asyncio.to_thread(self._run, *words)

    def _run(self, *words: str | Path) -> None:
        command = [helm(), *words, "--kubeconfig", self._kubeconfig]
        done = subprocess.run(command, env=self._homes, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


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


async def test_a_helm_upgrade_from_kuberays_charts_and_back_touches_no_ray_pod(stage: Stage, tmp_path: Path) -> None:
    run_helm = Helm(stage.plane, tmp_path)
    theirs = await asyncio.to_thread(module_folder, "github.com/ray-project/kuberay", VERSION) / "helm-chart"
    system, team = ("--namespace", SYSTEM), ("--namespace", TEAM)
    await run_helm("install", "kuberay-operator", theirs / "kuberay-operator", *system)
    await run_helm("install", "raycluster", theirs / "ray-cluster", *team)
    kuberay = await stage.start_kuberay(elected=True)
    await stage.scene("raycluster-kuberay").becomes("ready", seconds=READY_SECONDS)
    before = await ray_pods(stage)
    assert len(before) == 2

    await asyncio.to_thread(crds, [], "yaml", apply=True, kubeconfig=stage.plane.admin_kubeconfig, force=False)
    # The Job in front of the upgrade has just been done by hand: there are no real pods here.
    await run_helm("upgrade", "kuberay-operator", OURS / "kuberay-operator", *system, "--set=crds.upgrade=false")
    await run_helm("upgrade", "raycluster", OURS / "ray-cluster", *team)
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
