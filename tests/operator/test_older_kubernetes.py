"""RayClusters on the oldest Kubernetes that the bed can build: CRDs, children and status work there, too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bed.binaries import OLDER_KUBERNETES
from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.kuberay import kuberay_on
from bed.kwok import Kwok
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.taking_over import Stage, clusters_end, clusters_rest_and_wake, groups_grow_and_shrink

pytestmark = [pytest.mark.soak, pytest.mark.bed]


@pytest.fixture(scope="module")
def plane(new_control_plane: NewControlPlane) -> ControlPlane:
    plane = new_control_plane(ControlPlaneSettings(older=True))
    assert plane.admin.get("/version")["gitVersion"] == OLDER_KUBERNETES
    install_ray_crds(plane)
    Kwok(plane).up(nodes=2)
    return plane


@pytest.fixture
async def stage(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Stage]:
    make_namespace(plane, "team")
    async with connected(plane.admin_kubeconfig) as kube:
        with kuberay_on(plane) as kuberay, operators_of(plane, tmp_path) as operators:
            yield Stage(plane, kube, "team", kuberay, operators)


async def test_clusters_of_every_kind_start_grow_rest_wake_and_end(stage: Stage) -> None:
    await stage.start_ours(elected=True)
    await stage.apply()
    await stage.settled()
    await groups_grow_and_shrink(stage)
    await clusters_rest_and_wake(stage)
    await clusters_end(stage)
