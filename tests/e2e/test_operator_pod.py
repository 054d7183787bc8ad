"""The operator as a pod of our own image, under the roles of the chart: it makes, repairs and removes everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from bed.node.real_node import RealNode
from e2e.guide_shell import GuideShell
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.resources import INGRESSES, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, SERVICES
from support.conditions import eventually
from support.helm_releases import OUR_CHARTS
from support.kube_clients import connected
from support.raycluster_scene import CLUSTERS, SERVICE_OBJECTS, Scene

OPERATOR: Final = "kuberay-operator"
CHILDREN: tuple[Resource[JSON], ...] = tuple(
    kind.read_as(dict) for kind in (INGRESSES, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, SERVICES)
)
MODES: Final[dict[str, Sequence[str]]] = {
    "cluster-wide": ("rbacEnable=true", "singleNamespaceInstall=false"),
    "namespaces": (
        "rbacEnable=true",
        "singleNamespaceInstall=true",
        "crNamespacedRbacEnable=true",
        "watchNamespace={NAMESPACE}",
    ),
}
"""The two of the guide's section 5.3."""
CANNOT_SEE: Final = "other installations outside our namespaces cannot be seen"


@pytest.fixture
def shell(node_with_own_image: RealNode, tmp_path: Path) -> Iterator[GuideShell]:
    made = GuideShell(node_with_own_image.plane, tmp_path)
    yield made
    made.clean_up()


@pytest.fixture(params=MODES)
def home(request: pytest.FixtureRequest, shell: GuideShell, node_namespace: str) -> str:
    """A namespace that an operator looks after, which runs in another one."""
    sets = [word for value in MODES[request.param] for word in ("--set", value.replace("NAMESPACE", node_namespace))]
    shell.helm("install", OPERATOR, OUR_CHARTS / OPERATOR, *sets)
    shell.wait_for_deployment(OPERATOR)
    return node_namespace


def a_demanding_cluster() -> JSON:
    """A RayCluster with a child of each kind. Its pods never start: who may do what is shown without Ray."""
    template = {"spec": {"containers": [{"name": "ray", "image": "bed.local/none:1", "imagePullPolicy": "Never"}]}}
    group = {"groupName": "small", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "template": template}
    spec = {
        "rayVersion": "2.60.0",
        "authOptions": {"mode": "token"},
        "enableInTreeAutoscaling": True,
        "gcsFaultToleranceOptions": {"redisAddress": "redis:6379"},
        "headGroupSpec": {"enableIngress": True, "template": template},
        "workerGroupSpecs": [group],
    }
    metadata = {"name": "demo", "annotations": {labels.GCS_FT_DELETION_TIMEOUT: "2"}}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


async def test_the_operator_makes_repairs_and_removes_everything_under_its_own_role(
    home: str, shell: GuideShell
) -> None:
    async with connected(shell.plane.admin_kubeconfig) as kube:
        scene = Scene(kube, home)
        await scene.apply(a_demanding_cluster())
        await scene.has_pods(labels.HEAD_GROUP, 1)
        (worker,) = await scene.has_pods("small", 1)
        for kind in CHILDREN:
            assert await kube.list(kind, home, labels={labels.CLUSTER: "demo"}), kind

        service = ObjectKey(home, "demo-head-svc")
        await kube.merge_patch(SERVICES, service, {"spec": {"selector": {labels.NODE_TYPE: labels.WORKER}}})

        async def is_repaired() -> bool:
            return bool((await kube.get(SERVICE_OBJECTS, service))["spec"]["selector"][labels.NODE_TYPE] == labels.HEAD)

        await eventually(is_repaired)

        doomed = {"groupName": "small", "replicas": 0, "scaleStrategy": {"workersToDelete": [worker]}}
        (group,) = (await scene.cluster())["spec"]["workerGroupSpecs"]
        await scene.patch(workerGroupSpecs=[{**group, **doomed}])
        await scene.has_pods("small", 0)

        await kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)
    said = await asyncio.to_thread(shell.plane.kubectl, "logs", f"deployment/{OPERATOR}", "--namespace=default")
    refused = [json.loads(line)["msg"] for line in said.splitlines() if "forbidden" in line.lower()]
    assert [message for message in refused if message != CANNOT_SEE] == []
