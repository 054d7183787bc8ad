"""The operator under the roles that a real `helm install` makes for it, in every mode; the audit log is witness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.daemons import ControlPlaneSettings
from bed.fixtures import NewControlPlane, make_namespace
from bed.kwok import Kwok
from raykeeper.kube.client import Kube
from support.audit import AuditLog
from support.conditions import eventually
from support.helm_charts import Chart
from support.helm_releases import OUR_CHARTS, Helm
from support.kube_clients import connected
from support.operator_processes import operators_of
from support.operator_rights import Right
from support.raycluster_scene import CLUSTERS, TEMPLATE, Scene, a_group, a_raycluster

NAME: Final = "kuberay-operator"
DEMANDING: Final = a_raycluster(
    a_group("small", 1),
    a_group("tpu", 1, numOfHosts=2),
    headGroupSpec={"template": TEMPLATE, "enableIngress": True},
    enableInTreeAutoscaling=True,
    authOptions={"mode": "token"},
)
LOOKS_ELSEWHERE: Final = {Right("coordination.k8s.io", "leases", "list")}
"""An operator of single namespaces asks for the Leases of all, is refused, and looks into those that it may."""


@dataclass(frozen=True)
class Mode:
    """One way to install the operator; its namespace has its name."""

    values: dict[str, Any]
    watched: tuple[str, ...]
    refused: set[Right] = field(default_factory=set)
    by_hand: bool = False
    """Whether the values leave the roles to somebody else."""


MODES: Final[dict[str, Mode]] = {
    # The two of seed 003, 5.3: the whole cluster, and a list of namespaces.
    "all-namespaces": Mode({"rbacEnable": True, "singleNamespaceInstall": False}, ("somewhere",)),
    "listed-namespaces": Mode(
        {
            "rbacEnable": True,
            "singleNamespaceInstall": True,
            "crNamespacedRbacEnable": True,
            "watchNamespace": ["ray-ns1", "ray-ns2"],
        },
        ("ray-ns1", "ray-ns2"),
        LOOKS_ELSEWHERE,
    ),
    "own-namespace": Mode({"singleNamespaceInstall": True}, ("own-namespace",), LOOKS_ELSEWHERE),
    "some-with-cluster-role": Mode({"watchNamespace": ["some-1", "some-2"]}, ("some-1", "some-2")),
    "roles-by-hand": Mode(
        {"singleNamespaceInstall": True, "crNamespacedRbacEnable": False, "watchNamespace": ["by-hand"]},
        ("by-hand",),
        LOOKS_ELSEWHERE,
        by_hand=True,
    ),
}


def account(mode: str) -> str:
    return f"system:serviceaccount:{mode}:{NAME}"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AuditLog]:
    folder = tmp_path_factory.mktemp("audit")
    return {mode: AuditLog(folder, account(mode)) for mode in MODES}


@pytest.fixture(scope="module")
def plane(logs: dict[str, AuditLog], new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    """An API server that writes down what the operators ask for. It learns the CRDs from the chart."""
    flags = logs["own-namespace"].flags(*map(account, MODES))
    plane = new_control_plane(ControlPlaneSettings(extra_flags={"kube-apiserver": flags}))
    kwok = Kwok(plane)
    kwok.up(nodes=1)
    for name in sorted({*MODES, *(name for mode in MODES.values() for name in mode.watched)}):
        make_namespace(plane, name)
    yield plane
    kwok.down()


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[Kube]:
    async with connected(plane.admin_kubeconfig) as kube:
        yield kube


def make_roles_by_hand(plane: ControlPlane, name: str, mode: Mode) -> None:
    """What the chart would make, as the one who leaves that to somebody else would take it from there."""
    values = mode.values | {"crNamespacedRbacEnable": True}
    roles = [item for item in Chart(NAME).render(values, name) if item["kind"] in ("Role", "RoleBinding")]
    wanted = [item for item in roles if item["metadata"]["name"] == NAME]
    plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(wanted))


def rendered_arguments(plane: ControlPlane, namespace: str) -> list[str]:
    deployment = plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}")
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


async def lives_and_dies(scene: Scene) -> None:
    """A RayCluster with a child of each kind."""
    await scene.apply(DEMANDING)
    await scene.becomes("ready")
    await scene.patch(suspend=True)
    await scene.becomes("suspended")
    await scene.kube.delete(CLUSTERS, scene.key)

    async def is_gone() -> bool:
        return await scene.kube.find(CLUSTERS, scene.key) is None

    await eventually(is_gone)


@pytest.mark.parametrize("name", MODES)
async def test_the_operator_works_with_the_arguments_and_the_rights_that_helm_installed(
    name: str, plane: ControlPlane, kube: Kube, logs: dict[str, AuditLog], tmp_path: Path
) -> None:
    mode, helm = MODES[name], Helm(plane, tmp_path, name)
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(mode.values))
    await asyncio.to_thread(helm, "install", NAME, OUR_CHARTS / NAME, "--values", tmp_path / "values.yaml")
    if mode.by_hand:
        make_roles_by_hand(plane, name, mode)
    access = plane.kubeconfig(token=plane.token(name, NAME), namespace=name)
    flags = [*rendered_arguments(plane, name), f"--leader-election-namespace={name}"]
    with operators_of(plane, tmp_path) as operators:
        operator = operators.start(*flags, kubeconfig=access)
        await asyncio.to_thread(operator.wait_ready)
        for namespace in mode.watched:
            await lives_and_dies(Scene(kube, namespace))
        assert await asyncio.to_thread(operator.stop) == 0
    await asyncio.to_thread(helm, "uninstall", NAME)
    assert logs[name].refused() == mode.refused
    assert Right("", "pods", "create") in logs[name].used()
