"""The operator works as a pod in our own image, and needs no more than the role that it is given."""

from __future__ import annotations

import asyncio
import json

import pytest

from bed.crds import install_ray_crds
from bed.node.real_node import RealNode
from e2e.cluster import Namespace, is_ready
from e2e.operator_pod import OPERATOR, operator_objects
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.kube.resources import INGRESSES, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, SERVICES
from support.conditions import eventually
from support.kube_clients import connected
from support.raycluster_scene import CLUSTERS, SERVICE_OBJECTS, Scene

CHILDREN: tuple[Resource[JSON], ...] = tuple(
    kind.read_as(dict) for kind in (INGRESSES, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, SERVICES)
)


@pytest.fixture
def home(node_with_own_image: RealNode, node_namespace: str) -> Namespace:
    """A namespace with an operator in it that is ready."""
    plane = node_with_own_image.plane
    install_ray_crds(plane)
    for collection, body in operator_objects(node_namespace):
        plane.admin.post(collection, body)
    namespace = Namespace(plane, node_namespace)
    namespace.wait_for_pod(OPERATOR, is_ready)
    return namespace


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


async def test_the_operator_makes_repairs_and_removes_everything_under_its_own_role(home: Namespace) -> None:
    async with connected(home.plane.admin_kubeconfig) as kube:
        scene = Scene(kube, home.name)
        await scene.apply(a_demanding_cluster())
        await scene.has_pods(labels.HEAD_GROUP, 1)
        (worker,) = await scene.has_pods("small", 1)
        for kind in CHILDREN:
            assert await kube.list(kind, home.name, labels={labels.CLUSTER: "demo"}), kind

        service = ObjectKey(home.name, "demo-head-svc")
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
    said = (await asyncio.to_thread(home.log, OPERATOR)).splitlines()
    assert [json.loads(line)["msg"] for line in said if "forbidden" in line.lower()] == []
