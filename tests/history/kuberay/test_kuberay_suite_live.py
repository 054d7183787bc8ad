"""What KubeRay's end-to-end tests of its history server ask about a running cluster, which is read from the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.kuberay_client import KubeRayClient
from support.kuberay_suite_sessions import entered, fill_bucket
from support.raycapture import HEAD, SESSION, RayCapture


@pytest.fixture
async def client(raycapture: RayCapture, tmp_path: Path) -> AsyncIterator[KubeRayClient]:
    """Heartbeats are from now: a session that was recorded long ago, and runs."""
    await fill_bucket(tmp_path, "ours", raycapture, is_over=False)
    async with entered(tmp_path, "live") as client:
        yield client


async def test_a_running_cluster_answers_under_the_name_live(client: KubeRayClient) -> None:
    assert (await client.listed(SESSION.namespace, SESSION.cluster))["sessionName"] == "live"
    for path in ("/nodes?view=summary", "/api/v0/tasks", "/api/v0/tasks/summarize", "/logical/actors", "/events"):
        assert (await client.json(path))["result"] is True
    nodes = (await client.json("/nodes?view=summary"))["data"]
    assert (len(nodes["summary"]), len(nodes["nodeLogicalResources"])) == (2, 2)
    status = await client.json("/api/cluster_status?format=1")
    assert (status["result"], status["msg"]) == (True, "Got formatted cluster status.")
    assert "Autoscaler status" in status["data"]["clusterStatus"]


async def test_a_log_of_a_running_cluster_is_streamed(client: KubeRayClient, raycapture: RayCapture) -> None:
    query = f"node_id={HEAD.node_id}&filename=raylet.out&lines=1"
    async with client.http.get(f"{client.base}/api/v0/logs/stream?{query}") as response:
        assert response.status == 200
        last = raycapture.log_files(HEAD)["raylet.out"].splitlines(keepends=True)[-1]
        assert await response.content.readexactly(len(last)) == last


async def test_a_worker_of_a_running_cluster_has_a_log_by_its_pid(client: KubeRayClient) -> None:
    tasks = (await client.json("/api/v0/tasks"))["data"]["result"]["result"]
    task = next(task for task in tasks if task["worker_pid"] and task["node_id"])
    answered = await client.get(f"/api/v0/logs/file?pid={task['worker_pid']}&node_id={task['node_id']}")
    assert (answered.status, bool(answered.content)) == (200, True)
