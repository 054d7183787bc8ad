"""`kubectl ray`, KubeRay's own plugin, beside our operator: its commands find what they need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bed.binaries import BINARIES, binary, build
from bed.control_plane import ControlPlane
from raykeeper.client import AsyncClient, ray_cluster
from support.conditions import eventually
from support.operating import operating

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("kwok")]


class Plugin:
    """The plugin, as kubectl starts it."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        (folder / "kubectl").symlink_to(binary("kubectl"))  # `session` starts it by this name
        self._path = os.pathsep.join([str(folder), os.environ["PATH"]])

    def command(self, *arguments: str) -> list[str]:
        access = f"--kubeconfig={self._plane.admin_kubeconfig}"
        return [str(BINARIES["kubectl-ray"].path), *arguments, access, "--namespace", self._namespace]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": self._path, "KUBECONFIG": str(self._plane.admin_kubeconfig)}

    async def run(self, *arguments: str, fails: bool = False) -> str:
        """What it prints."""
        done = await asyncio.to_thread(
            subprocess.run,
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            env=self.environment,
        )
        assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def plugin_binary() -> None:
    build(["kubectl-ray"])


@pytest.fixture
async def plugin(ray_crds: ControlPlane, namespace: str, tmp_path: Path) -> AsyncIterator[Plugin]:
    async with operating(ray_crds.admin_kubeconfig, namespace):
        yield Plugin(ray_crds, namespace, tmp_path)


async def test_clusters_are_created_shown_scaled_and_deleted(
    plugin: Plugin, ray_crds: ControlPlane, namespace: str
) -> None:
    assert "dry-run" not in await plugin.run("create", "cluster", "demo", "--worker-replicas", "2", "--wait")
    shown = await plugin.run("get", "cluster", "demo")
    for part in ("demo", "2", "RayClusterProvisioned", "ready"):
        assert part in shown
    groups = await plugin.run("get", "workergroup", "--ray-cluster", "demo")
    assert "default-group" in groups
    assert "2/2" in groups
    nodes = await plugin.run("get", "node", "--ray-cluster", "demo")
    assert (nodes.count("worker"), "head" in nodes) == (4, True)  # each name and type
    await plugin.run("create", "workergroup", "more", "--ray-cluster", "demo", "--worker-replicas", "1")
    await plugin.run("scale", "cluster", "demo", "--worker-group", "default-group", "--replicas", "3")
    async with AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        ready = await ray.clusters.wait_until_ready("demo", timeout=120)
        assert ready["status"]["readyWorkerReplicas"] == 4
        await plugin.run("delete", "raycluster/demo", "--yes")
        await ray.clusters.wait_until_gone("demo", timeout=60)


async def test_a_token_of_a_cluster_is_printed(plugin: Plugin, ray_crds: ControlPlane, namespace: str) -> None:
    async with AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        await ray.clusters.create(ray_cluster("closed", authOptions={"mode": "token"}))
        await ray.clusters.wait_until_ready("closed", timeout=120)
    assert len((await plugin.run("get", "token", "closed")).strip()) >= 20


async def test_a_submitted_job_gets_its_cluster(
    plugin: Plugin, ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """As far as it goes without a kubelet: the RayJob is made, its cluster is found and ready."""
    words = ("job", "submit", "--name", "train", "--working-dir", str(tmp_path), "--", "python", "train.py")
    command = plugin.command(*words[:6]) + list(words[6:])
    running = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=plugin.environment
    )
    try:
        async with AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:

            async def is_expected_to_run() -> bool:
                """Once its cluster is ready: the plugin sets `jobId` from the beginning, so nothing is waited for."""
                job = await ray.jobs.find("train")
                return bool(job and job.get("status", {}).get("jobDeploymentStatus") == "Running")

            await eventually(is_expected_to_run)
            job = await ray.jobs.get("train")
            assert job["status"]["jobId"] == job["spec"]["jobId"]
            assert job["spec"]["submissionMode"] == "InteractiveMode"
            assert job["spec"]["jobId"].startswith("raysubmit_")
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
        await running.wait()


async def test_a_session_finds_the_head_service(plugin: Plugin, ray_crds: ControlPlane, namespace: str) -> None:
    async with AsyncClient(kubeconfig=ray_crds.admin_kubeconfig, namespace=namespace) as ray:
        await ray.clusters.create(ray_cluster("demo"))
        await ray.clusters.wait_until_ready("demo", timeout=120)
    running = await asyncio.create_subprocess_exec(
        *plugin.command("session", "demo", "--verbose"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=plugin.environment,
    )
    assert running.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(60):
            while b"demo-head-svc" not in said:
                said += await running.stdout.read(4096)
    finally:
        running.kill()
        await running.wait()


async def test_what_is_not_there_is_refused(plugin: Plugin) -> None:
    for words in (("get", "token", "nope"), ("log", "nope"), ("session", "nope")):
        await plugin.run(*words, fails=True)
    await plugin.run("scale", "cluster", "nope", "--worker-group", "x", "--replicas", "1", fails=True)
