"""What the operator asks the API server before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import Object, Resource
from raykeeper.api.raycluster import RAY_CLUSTERS
from raykeeper.clock import SystemClock
from raykeeper.kube.resources import JOBS, PODS
from raykeeper.operator.api_server_facts import MissingKinds, survey, wait_for_kinds
from support.kube_clients import connected

NOWHERE: Resource[Object] = Resource("example.org", "v1", "things", "Thing", Object)


@pytest.fixture
def access(ray_crds: ControlPlane) -> Path:
    return ray_crds.admin_kubeconfig


async def test_the_version_of_the_api_server_is_learned(access: Path) -> None:
    async with connected(access) as kube:
        api_server = await survey(kube, SystemClock())
    assert api_server.kubernetes >= (1, 36)


async def test_the_gateway_api_is_used_where_it_is_served_and_may_be_followed(
    access: Path, gateway_crds: ControlPlane, namespace: str
) -> None:
    async with connected(access) as kube:
        assert (await survey(kube, SystemClock())).has_gateway_api
        assert (await survey(kube, SystemClock(), namespaces=[namespace])).has_gateway_api
    async with connected(gateway_crds.kubeconfig("without-rights", groups=())) as kube:
        assert not (await survey(kube, SystemClock())).has_gateway_api
        assert not (await survey(kube, SystemClock(), namespaces=[namespace])).has_gateway_api


async def test_kinds_that_are_served_are_not_waited_for(access: Path) -> None:
    async with connected(access) as kube:
        await wait_for_kinds(kube, SystemClock(), [RAY_CLUSTERS, PODS, JOBS], patience_seconds=0)


async def test_kinds_that_do_not_come_are_named_with_the_cure(access: Path) -> None:
    async with connected(access) as kube:
        with pytest.raises(MissingKinds, match=r"things\.example\.org are not installed: `raykeeper crds \| kubectl"):
            await wait_for_kinds(kube, SystemClock(), [PODS, NOWHERE], patience_seconds=0)
