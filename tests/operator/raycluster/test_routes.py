"""On OpenShift the way to the dashboard is a Route: it is made, repaired and removed like every child."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.resources import INGRESSES, ROUTES
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.settings import OperatorSettings, RayClusterSettings
from support.conditions import eventually
from support.kube_clients import connected
from support.openshift import install_routes
from support.operating import operating
from support.raycluster_scene import TEMPLATE, Scene, a_raycluster

OPENSHIFT = ApiServerFacts((1, 36), is_openshift=True)
ROUTE_OBJECTS = ROUTES.read_as(dict)
WITH_A_DOOR = a_raycluster(headGroupSpec={"template": TEMPLATE, "enableIngress": True})


@pytest.fixture(scope="module")
def openshift(own_control_plane: ControlPlane) -> ControlPlane:
    install_ray_crds(own_control_plane)
    install_routes(own_control_plane)
    return own_control_plane


@pytest.fixture
async def scene(openshift: ControlPlane) -> AsyncIterator[Scene]:
    namespace = f"route-{uuid4().hex[:8]}"
    await asyncio.to_thread(make_namespace, openshift, namespace)
    async with connected(openshift.admin_kubeconfig) as kube:
        yield Scene(kube, namespace)


def route_key(scene: Scene) -> ObjectKey:
    return ObjectKey(scene.namespace, "demo-head-route")


async def route(scene: Scene) -> JSON:
    """The Route, once it is there."""
    return await eventually(lambda: scene.kube.find(ROUTE_OBJECTS, route_key(scene))) or {}


async def is_without_route(scene: Scene) -> None:
    async def look() -> bool:
        return await scene.kube.find(ROUTE_OBJECTS, route_key(scene)) is None

    await eventually(look)


async def test_a_route_goes_when_the_ingress_is_turned_off(openshift: ControlPlane, scene: Scene) -> None:
    await scene.apply(WITH_A_DOOR)
    async with operating(openshift.admin_kubeconfig, scene.namespace, api_server=OPENSHIFT):
        await route(scene)
        assert await scene.kube.list(INGRESSES, scene.namespace) == []
        await scene.patch(headGroupSpec={"enableIngress": False})
        await is_without_route(scene)


async def test_a_route_that_was_changed_comes_back_with_the_host_it_has(openshift: ControlPlane, scene: Scene) -> None:
    await scene.apply(WITH_A_DOOR)
    async with operating(openshift.admin_kubeconfig, scene.namespace, api_server=OPENSHIFT):
        spec = (await route(scene))["spec"]
        meddling = {"spec": {"host": "demo.apps.example.com", "to": {"name": "elsewhere"}}}
        await scene.kube.merge_patch(ROUTES, route_key(scene), meddling)

        async def is_repaired() -> bool:
            return bool((await route(scene))["spec"] == spec | {"host": "demo.apps.example.com"})

        await eventually(is_repaired)


async def test_a_route_that_was_deleted_is_made_again(openshift: ControlPlane, scene: Scene) -> None:
    await scene.apply(WITH_A_DOOR)
    async with operating(openshift.admin_kubeconfig, scene.namespace, api_server=OPENSHIFT):
        uid = (await route(scene))["metadata"]["uid"]
        await scene.kube.delete(ROUTES, route_key(scene))

        async def is_made_again() -> bool:
            return bool((await route(scene))["metadata"]["uid"] != uid)

        await eventually(is_made_again)


async def test_a_route_gives_way_to_the_ingress_that_the_operator_is_told_to_use(
    openshift: ControlPlane, scene: Scene
) -> None:
    await scene.apply(WITH_A_DOOR)
    async with operating(openshift.admin_kubeconfig, scene.namespace, api_server=OPENSHIFT):
        await route(scene)
    ingress = OperatorSettings(raycluster=RayClusterSettings(uses_ingress_on_openshift=True))
    async with operating(openshift.admin_kubeconfig, scene.namespace, api_server=OPENSHIFT, settings=ingress):
        await is_without_route(scene)
        await eventually(lambda: scene.kube.list(INGRESSES, scene.namespace))
