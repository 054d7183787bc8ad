"""A spec that makes no sense is told like any other that is wrong; it is no bug, and can be deleted."""

from __future__ import annotations

import msgspec

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from raykeeper.api.meta import JSON, Object
from raykeeper.operator.raycluster.reading import read_cluster
from support.conditions import eventually
from support.kube_clients import connected
from support.operating import operating
from support.raycluster_scene import CLUSTERS, Scene, a_group, a_raycluster


def stored(spec: JSON, status: JSON | None = None) -> Object:
    body = {"metadata": {"name": "demo", "namespace": "n"}, "spec": spec, "status": status or {}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Object)


def test_a_field_of_the_wrong_type_is_named() -> None:
    spec = a_raycluster(a_group("small", replicas="two"))["spec"]  # type: ignore[arg-type]
    cluster, broken = read_cluster(stored(spec, {"state": "ready"}))
    assert [str(one) for one in broken] == [
        "spec.workerGroupSpecs[0].replicas cannot be read (Expected `int`, got `str`): "
        "write it as the schema of ray.io/v1 says"
    ]
    assert cluster.metadata.name == "demo"
    assert cluster.status.state == "ready"


def test_a_spec_that_is_missing_is_named() -> None:
    _, (broken,) = read_cluster(stored({}))
    assert str(broken).startswith("spec cannot be read (Object missing required field `headGroupSpec`)")


def test_what_can_be_read_is_not_complained_about() -> None:
    cluster, broken = read_cluster(stored(a_raycluster(a_group("small", 2))["spec"]))
    assert (cluster.spec.worker_group_specs[0].replicas, broken) == (2, [])


async def test_an_old_manifest_that_makes_no_sense_is_told_and_can_be_mended(
    ray_crds: ControlPlane, kwok: Kwok, namespace: str
) -> None:
    old = a_raycluster(a_group("small", replicas="two", rayStartParams={}))  # type: ignore[arg-type]
    old["apiVersion"] = "ray.io/v1alpha1"
    old["spec"]["headGroupSpec"]["rayStartParams"] = {}
    ray_crds.admin.post(f"/apis/ray.io/v1alpha1/namespaces/{namespace}/rayclusters", old)
    async with connected(ray_crds.admin_kubeconfig) as kube, operating(ray_crds.admin_kubeconfig, namespace):
        scene = Scene(kube, namespace)
        condition = await scene.condition("RayClusterInvalid", "True")
        assert "spec.workerGroupSpecs[0].replicas" in condition["message"]
        await scene.patch(workerGroupSpecs=[a_group("small", 1)])
        await scene.becomes("ready")
        await scene.kube.delete(CLUSTERS, scene.key)

        async def is_gone() -> bool:
            return await scene.kube.find(CLUSTERS, scene.key) is None

        await eventually(is_gone)
