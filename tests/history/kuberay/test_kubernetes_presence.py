"""Whether a RayCluster is still there, asked of a real API server with the documented rights."""

from __future__ import annotations

import pytest

from bed.control_plane import ControlPlane
from raykeeper.history.http.kuberay_api.presence import KubernetesPresence
from support.clocks import ManualClock
from support.kube_clients import connected
from support.observed_kubernetes import KubernetesScene

pytestmark = pytest.mark.bed


@pytest.fixture
def scene(ray_crds: ControlPlane, namespace: str) -> KubernetesScene:
    return KubernetesScene(ray_crds, namespace)


async def test_a_cluster_is_gone_as_soon_as_it_is_deleted_and_so_is_one_that_was_made_again(
    scene: KubernetesScene,
) -> None:
    cluster, clock = scene.make_cluster("train"), ManualClock()
    async with connected(scene.observers_kubeconfig()) as kube:
        presence = KubernetesPresence(kube, clock)
        assert not await presence.is_gone(scene.namespace, "train", cluster.uid)
        assert not await presence.is_gone(scene.namespace, "train", "")
        assert await presence.is_gone(scene.namespace, "train", "another uid")
        scene.delete_cluster(cluster)
        clock.advance(3)
        assert await presence.is_gone(scene.namespace, "train", cluster.uid)
        assert await presence.is_gone(scene.namespace, "never", "")


async def test_who_may_not_ask_says_that_nothing_is_gone(scene: KubernetesScene) -> None:
    stranger = scene.plane.kubeconfig("stranger", token=scene.plane.token(scene.namespace), namespace=scene.namespace)
    async with connected(stranger) as kube:
        assert not await KubernetesPresence(kube, ManualClock()).is_gone(scene.namespace, "train", "")


async def test_other_namespaces_than_those_that_are_watched_are_not_asked_about(scene: KubernetesScene) -> None:
    async with connected(scene.observers_kubeconfig()) as kube:
        presence = KubernetesPresence(kube, ManualClock(), namespaces=(scene.namespace,))
        assert not await presence.is_gone("elsewhere", "train", "")
