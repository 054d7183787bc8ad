"""The observer inside a real `raykeeper history` that is killed, and with a real API server and bucket that fail."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import aiohttp
import pytest

from bed.control_plane import ControlPlane
from bed.crds import install_ray_crds
from bed.fixtures import make_namespace
from bed.minio import Minio
from raykeeper.history.store.kube_facts import newest_pods
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.records import CLUSTER_DELETED
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.collector_stores import s3_environment
from support.conditions import eventually
from support.observed_kubernetes import NOBODY, KubernetesScene, facts_of, history, observed, when_closed
from support.observer_scene import put_session_of

PHASES = ("Pending", "Running", "Failed")


async def test_a_history_server_observes_says_so_in_its_metrics_and_gives_the_lease_back(
    ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    scene, store = KubernetesScene(ray_crds, namespace), _folder_store(tmp_path / "store")
    flags = (
        f"--store=file://{tmp_path}/store",
        f"--kubeconfig={scene.observers_kubeconfig()}",
        f"--kubernetes-namespaces={namespace}",
    )
    cluster = scene.make_cluster("train")
    with history(tmp_path / "server", flags, {}) as server:
        await eventually(lambda: _is_noted(store, cluster))
        await eventually(lambda: _has_metric(tmp_path / "server", "raykeeper_observer_facts_total 1.0"))
        assert await _has_metric(tmp_path / "server", 'leader_election_master_status{name="raykeeper-history-')
    assert server.returncode == 0
    facts = await facts_of(store, cluster)
    assert facts.cluster is not None
    leases = scene.plane.admin.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
    assert [lease["spec"]["holderIdentity"] for lease in leases] == [""]


@pytest.mark.soak
async def test_a_server_that_was_killed_goes_on_where_it_was(
    ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    scene, store = KubernetesScene(ray_crds, namespace), _folder_store(tmp_path / "store")
    flags = (
        f"--store=file://{tmp_path}/store",
        f"--kubeconfig={scene.observers_kubeconfig()}",
        f"--kubernetes-namespaces={namespace}",
    )
    kept, deleted = scene.make_cluster("kept"), scene.make_cluster("deleted")
    scene.make_pod(kept, "kept-head", "head", scheduler=NOBODY)
    open_session, session = await put_session_of(store, kept), await put_session_of(store, deleted)
    with history(tmp_path / "first", flags, {}) as first:
        await eventually(lambda: _is_noted(store, kept, deleted))
        first.send_signal(signal.SIGKILL)
    scene.delete_cluster(deleted)
    scene.patch_status("kept-head", phase="Failed", reason="Evicted", message="low on memory")
    with history(tmp_path / "second", flags, {}):
        assert (await when_closed(store, session)).reason == CLUSTER_DELETED
        await eventually(lambda: _says(store, kept, "Evicted"))
    assert await store.find(f"{open_session.prefix}closed.json") is None  # its head was never seen alive by this one
    [pod] = newest_pods((await facts_of(store, kept)).pods)
    assert (pod.phase, pod.reason, pod.message) == ("Failed", "Evicted", "low on memory")


@pytest.mark.soak
async def test_a_restarted_api_server_that_forgot_its_history_costs_nothing(
    own_control_plane: ControlPlane, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_ray_crds, own_control_plane)
    await asyncio.to_thread(make_namespace, own_control_plane, "observed")
    scene, store = KubernetesScene(own_control_plane, "observed"), _folder_store(tmp_path)
    cluster = scene.make_cluster("train")
    scene.make_pod(cluster, "train-head", "head", scheduler=NOBODY)
    gone = scene.make_cluster("gone")
    session = await put_session_of(store, gone)
    async with observed(scene.observers_kubeconfig(), "observed", tmp_path):
        await eventually(lambda: _is_noted(store, gone))
        await eventually(lambda: _says(store, cluster, "Pending"))
        scene.delete_cluster(gone)
        own_control_plane.compact_etcd()
        own_control_plane.apiserver.kill()
        own_control_plane.apiserver.start()
        await asyncio.to_thread(own_control_plane.wait_ready, 180)  # meanwhile the lease is lost
        scene.patch_status("train-head", phase="Failed", reason="NodeLost")
        await eventually(lambda: _says(store, cluster, "NodeLost"))
        assert (await when_closed(store, session)).reason == CLUSTER_DELETED
    facts = await facts_of(store, cluster)
    assert facts.is_complete
    assert [pod.phase for pod in facts.pods] == ["Pending", "Failed"]


@pytest.mark.soak
async def test_a_bucket_that_is_away_gets_everything_when_it_is_back(
    ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    minio = await asyncio.to_thread(Minio.create, _made(tmp_path / "minio"))
    await asyncio.to_thread(minio.up)
    try:
        await _lose_bucket(minio, KubernetesScene(ray_crds, namespace), tmp_path)
    finally:
        await asyncio.to_thread(minio.down)


async def _lose_bucket(minio: Minio, scene: KubernetesScene, folder: Path) -> None:
    minio.make_bucket("facts")
    environment = s3_environment(minio, "facts")
    store = open_store(read_store_settings("s3", "", environment))
    flags = (f"--kubeconfig={scene.observers_kubeconfig()}", f"--kubernetes-namespaces={scene.namespace}")
    with history(folder / "server", flags, environment):
        cluster = scene.make_cluster("train")
        scene.make_pod(cluster, "train-head", "head", scheduler=NOBODY)
        await eventually(lambda: _says(store, cluster, "Pending"))
        await asyncio.to_thread(minio.process.stop)
        for phase in PHASES:
            scene.patch_status("train-head", phase=phase, reason=f"while away: {phase}")
            await asyncio.sleep(1)  # so that each is seen: the API server may show a fast change as one
        await asyncio.to_thread(minio.up)
        await eventually(lambda: _says(store, cluster, "while away: Failed"))
    facts = await facts_of(store, cluster)
    assert facts.is_complete
    assert [pod.reason for pod in facts.pods] == ["", *(f"while away: {phase}" for phase in PHASES)]


async def _has_metric(folder: Path, text: str) -> bool:
    lines = (folder / "log").read_text().split("\n")[:-1]
    [port] = [line["port"] for line in map(json.loads, lines) if line["msg"] == "listening"] or [None]
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return text in await answer.text()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _folder_store(folder: Path) -> ObjectStore:
    folder.mkdir()  # a server refuses a store that is not there
    return open_store(parse_store_url(f"file://{folder}", {}))


async def _says(store: ObjectStore, cluster: ClusterId, text: str) -> bool:
    return any(text in (pod.phase, pod.reason) for pod in (await facts_of(store, cluster)).pods)


async def _is_noted(store: ObjectStore, *clusters: ClusterId) -> bool:
    noted = {stat.key.rpartition("~")[2] async for stat in store.list("v1/observed/")}
    return {cluster.uid for cluster in clusters} <= noted
