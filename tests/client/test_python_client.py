"""What KubeRay's tests of its Python client ask for, against our operator on a real API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest

from bed.control_plane import ControlPlane
from raykeeper.client.python_client.kuberay_cluster_api import RayClusterApi
from raykeeper.client.python_client.kuberay_job_api import RayjobApi
from raykeeper.client.python_client.utils.kuberay_cluster_builder import Director
from support.operating import operating
from support.rayjob_scene import JobScene, a_job_scene, a_rayjob

pytestmark = pytest.mark.usefixtures("kwok")
T = TypeVar("T")


async def done(work: Callable[..., T], *arguments: Any, **named: Any) -> T:
    return await asyncio.to_thread(work, *arguments, **named)


@pytest.fixture(autouse=True)
def kubeconfig(ray_crds: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(ray_crds.admin_kubeconfig))


async def test_clusters_are_created_listed_patched_awaited_and_deleted(
    ray_crds: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    api = await done(RayClusterApi)
    body = Director().build_small_cluster(name="demo", k8s_namespace=namespace, labels={"team": "a"})
    assert (await done(api.create_ray_cluster, body, namespace))["metadata"]["name"] == "demo"
    assert await done(api.create_ray_cluster, body, namespace) is None
    assert "raycluster resource already exists" in caplog.text
    async with operating(ray_crds.admin_kubeconfig, namespace):
        assert await done(api.wait_until_ray_cluster_running, "demo", namespace, 120, 1)
    assert (await done(api.get_ray_cluster_status, "demo", namespace, 5, 1))["state"] == "ready"
    assert len((await done(api.list_ray_clusters, namespace, label_selector="team=a"))["items"]) == 1
    assert (await done(api.list_ray_clusters, namespace, label_selector="team=b"))["items"] == []
    assert await done(api.patch_ray_cluster, "demo", {"metadata": {"labels": {"new": "label"}}}, namespace) is True
    assert (await done(api.get_ray_cluster, "demo", namespace))["metadata"]["labels"]["new"] == "label"
    assert await done(api.patch_ray_cluster, "demo", {"spec": {"headGroupSpec": 1}}, namespace) is False
    assert (await done(api.delete_ray_cluster, "demo", namespace)) is not None
    assert await done(api.delete_ray_cluster, "nope", namespace) is None
    assert await done(api.get_ray_cluster, "nope", namespace) is None
    assert await done(api.get_ray_cluster_status, "nope", namespace, 5, 1) is None
    assert await done(api.wait_until_ray_cluster_running, "nope", namespace, 2, 1) is False


@pytest.fixture
async def scene(ray_crds: ControlPlane) -> AsyncIterator[JobScene]:
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(a_job_scene(ray_crds))


async def test_jobs_run_finish_are_suspended_resubmitted_and_deleted(scene: JobScene) -> None:
    api, namespace = await done(RayjobApi), scene.namespace
    async with scene.operating():
        assert (await done(api.submit_job, namespace, a_rayjob(shutdownAfterJobFinishes=True)))["metadata"][
            "name"
        ] == "counter"
        assert await done(api.wait_until_job_running, "counter", namespace, 120, 1)
        assert await done(api.suspend_job, "counter", namespace) is True
        await scene.becomes("Suspended")
        assert await done(api.resubmit_job, "counter", namespace) is True
        job = await scene.is_submitted(2)
        scene.head.move(job, "SUCCEEDED")
        assert await done(api.wait_until_job_finished, "counter", namespace, 120, 1)
        status = await done(api.get_job_status, "counter", namespace, 5, 1)
        assert status["jobStatus"] == "SUCCEEDED"
        assert [one["metadata"]["name"] for one in (await done(api.list_jobs, namespace))["items"]] == ["counter"]
        assert await done(api.delete_job, "counter", namespace) is True


async def test_jobs_that_are_not_there_or_invalid_are_none_and_false(scene: JobScene) -> None:
    api, namespace = await done(RayjobApi), scene.namespace
    assert await done(api.get_job, "nope", namespace) is None
    assert await done(api.get_job_status, "nope", namespace, 5, 1) is None
    for order in (api.suspend_job, api.stop_job, api.resubmit_job, api.delete_job):
        assert await done(order, "nope", namespace) is False
    assert await done(api.submit_job, namespace, a_rayjob(suspend="no")) is None
    assert await done(api.wait_until_job_finished, "nope", namespace, 2, 1) is False
