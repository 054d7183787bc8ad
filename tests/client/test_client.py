"""`raykeeper.client` against a real API server, with an operator, and through our API server's V2."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from raykeeper.client import (
    AlreadyExists,
    AsyncClient,
    Client,
    Health,
    InvalidManifest,
    NotFound,
    RaykeeperError,
    WaitFailed,
    WaitTimedOut,
    WorkerGroup,
    ray_cluster,
    ray_job,
)
from support.api_processes import api_server_on
from support.operating import operating
from support.rayjob_scene import a_job_scene, a_rayjob
from support.scripted_server import served
from support.sick_objects import put_job, put_sick_cluster

T = TypeVar("T")


async def done(work: Callable[..., T], *arguments: Any, **named: Any) -> T:
    return await asyncio.to_thread(work, *arguments, **named)


def test_objects_are_made_found_changed_watched_and_deleted(ray_crds: ControlPlane, namespace: str) -> None:
    with Client(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        manifest = ray_cluster("demo", labels={"team": "a"}, workers=[WorkerGroup(name="small", replicas=2)])
        assert ray.clusters.create(manifest, dry_run=True)["metadata"]["name"] == "demo"
        assert ray.clusters.find("demo") is None
        ray.clusters.create(manifest)
        with pytest.raises(AlreadyExists):
            ray.clusters.create(manifest)
        assert [item["metadata"]["name"] for item in ray.clusters.list(labels={"team": "a"})] == ["demo"]
        group = ray.clusters.scale("demo", "small", 5)["spec"]["workerGroupSpecs"][0]
        assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (5, 2, 5)
        group = ray.clusters.scale("demo", "small", 0)["spec"]["workerGroupSpecs"][0]
        assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (0, 0, 5)
        with pytest.raises(RaykeeperError, match="has no worker group 'large'; it has small"):
            ray.clusters.scale("demo", "large", 1)
        assert ray.clusters.suspend("demo")["spec"]["suspend"] is True
        assert ray.clusters.resume("demo")["spec"]["suspend"] is False
        changes = ray.clusters.watch(name="demo")
        assert next(changes).change == "ADDED"
        ray.clusters.patch("demo", {"metadata": {"labels": {"seen": "yes"}}})
        assert next(changes).object["metadata"]["labels"]["seen"] == "yes"
        ray.clusters.delete("demo")
        assert next(changes).change == "DELETED"
        changes.close()
        ray.clusters.wait_until_gone("demo", timeout=10)
        ray.clusters.delete("demo", missing_ok=True)
        for call in (ray.clusters.get, ray.clusters.delete):
            with pytest.raises(NotFound):
                call("demo")
    with pytest.raises(RaykeeperError, match="closed"):
        ray.clusters.list()


def test_apply_makes_and_changes(ray_crds: ControlPlane, namespace: str) -> None:
    with Client(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        ray.jobs.apply(ray_job("train", "python one.py"))
        assert ray.jobs.apply(ray_job("train", "python two.py"))["spec"]["entrypoint"] == "python two.py"
        with pytest.raises(InvalidManifest, match="is not 'RayCluster'"):
            ray.clusters.apply(ray_job("train", "python one.py"))


def test_a_wait_that_takes_too_long_says_why(ray_crds: ControlPlane, namespace: str) -> None:
    put_sick_cluster(ray_crds, namespace)
    with (
        Client(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray,
        pytest.raises(WaitTimedOut) as raised,
    ):
        ray.clusters.wait_until_ready("demo", timeout=0.5)
    for part in ("in 0.5 seconds", "0 of 1 workers are ready", "ImagePullBackOff: no such tag", "cannot pull"):
        assert part in str(raised.value)
    assert raised.value.diagnosis.health is Health.WAITING
    assert isinstance(raised.value, TimeoutError)


def test_a_job_that_failed_ends_the_wait_at_once(ray_crds: ControlPlane, namespace: str) -> None:
    put_job(ray_crds, namespace, "train", {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "boom"})
    with Client(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        with pytest.raises(WaitFailed, match="AppFailed: boom"):
            ray.jobs.wait_until_finished("train", timeout=60)
        with pytest.raises(WaitFailed, match="is gone"):
            ray.jobs.wait_until_running("nobody", timeout=60)


@pytest.mark.usefixtures("kwok")
async def test_a_cluster_of_the_builder_becomes_ready_and_is_suspended(ray_crds: ControlPlane, namespace: str) -> None:
    async with (
        operating(ray_crds.admin_kubeconfig, namespace),
        AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray,
    ):
        await ray.clusters.create(ray_cluster("demo", workers=[WorkerGroup(replicas=2)]))
        ready = await ray.clusters.wait_until_ready("demo", timeout=120)
        assert ready["status"]["readyWorkerReplicas"] == 2
        seen = await ray.clusters.describe("demo")
        assert (seen.health, len(seen.pods), seen.waits_for) == (Health.READY, 3, ())
        await ray.clusters.suspend("demo")
        await ray.clusters.wait_until_suspended("demo", timeout=120)


@pytest.mark.usefixtures("kwok")
async def test_a_job_is_awaited_from_a_script(ray_crds: ControlPlane) -> None:
    async with a_job_scene(ray_crds) as scene, scene.operating():
        ray = await done(Client, kubeconfig=ray_crds.admin_kubeconfig, namespace=scene.namespace)
        await done(ray.jobs.create, a_rayjob())
        await done(ray.jobs.wait_until_running, "counter", timeout=120)
        scene.head.move(await scene.is_submitted(), "FAILED", "ValueError: no such column")
        with pytest.raises(WaitFailed, match="no such column"):
            await done(ray.jobs.wait_until_finished, "counter", timeout=120)
        await done(ray.close)


def test_the_same_client_works_through_our_api_server(ray_crds: ControlPlane, namespace: str, tmp_path: Path) -> None:
    with api_server_on(ray_crds, tmp_path) as server:
        address = f"http://{LOOPBACK}:{server.ports.http}"
        with Client(server=address, namespace=namespace) as ray:
            ray.clusters.create(ray_cluster("demo", workers=[WorkerGroup(name="small")]))
            ray.clusters.scale("demo", "small", 3)
            changes = ray.clusters.watch()
            assert next(changes).object["spec"]["workerGroupSpecs"][0]["replicas"] == 3
            changes.close()
            with pytest.raises(WaitTimedOut) as raised:
                ray.clusters.wait_until_ready("demo", timeout=0.2)
            assert any("pods" in missing for missing in raised.value.diagnosis.unread)
            ray.clusters.delete("demo")
            ray.clusters.wait_until_gone("demo", timeout=30)


@pytest.mark.parametrize("server", ["localhost:8888", "ftp://x"])
def test_an_address_that_is_none_is_refused_at_once(server: str) -> None:
    with pytest.raises(RaykeeperError, match="must begin with http"):
        Client(server=server)


async def test_a_wait_that_ends_badly_has_the_headline_of_the_report(ray_crds: ControlPlane, namespace: str) -> None:
    """Of the history server: a job that failed, and a cluster that takes too long."""
    await done(put_job, ray_crds, namespace, "train", {"jobDeploymentStatus": "Failed", "reason": "AppFailed"})
    await done(put_sick_cluster, ray_crds, namespace)
    seen: list[tuple[str, str | None]] = []

    async def history(request: web.BaseRequest) -> web.StreamResponse:
        seen.append((request.path, request.headers.get("Authorization")))
        what = "the driver" if "rayjobs" in request.path else "worker 7"
        return web.json_response({"headline": {"text": "ValueError: no such column 'age'", "what": what}})

    async with (
        served(history) as url,
        AsyncClient(
            kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace, history=url, history_token="s3cret"
        ) as ray,
    ):
        with pytest.raises(WaitFailed) as failed:
            await ray.jobs.wait_until_finished("train", timeout=60)
        with pytest.raises(WaitTimedOut) as late:
            await ray.clusters.wait_until_ready("demo", timeout=0.5)
    assert "report: ValueError: no such column 'age' (the driver)" in str(failed.value)
    assert "report: ValueError: no such column 'age' (worker 7)" in str(late.value)
    assert late.value.diagnosis.headline == "ValueError: no such column 'age' (worker 7)"
    reports = [f"rayjobs/{namespace}/train/report", f"sessions/{namespace}/demo/latest/report"]
    assert seen == [(f"/api/keeper/v1/{path}", "Bearer s3cret") for path in reports]


@pytest.mark.parametrize("status", [404, 500])
async def test_a_history_server_that_says_nothing_hides_no_other_cause(
    status: int, ray_crds: ControlPlane, namespace: str
) -> None:
    failed = {"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "boom"}
    await done(put_job, ray_crds, namespace, "train", failed)

    async def history(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"error": "out of order"}, status=status)

    async with (
        served(history) as url,
        AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace, history=url) as ray,
    ):
        with pytest.raises(WaitFailed, match="AppFailed: boom") as raised:
            await ray.jobs.wait_until_finished("train", timeout=60)
    assert raised.value.diagnosis.headline == ""
    assert any("out of order" in missing for missing in raised.value.diagnosis.unread) == (status == 500)
