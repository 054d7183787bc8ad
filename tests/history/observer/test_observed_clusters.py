"""The observer on a real API server: what happens to a cluster is recorded, and its end is written down."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.kwok import Kwok
from raykeeper.history.observer import leader
from raykeeper.history.store.kube_facts import newest_pods
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.records import CLUSTER_DELETED, CLUSTER_SUSPENDED, HEAD_LOST
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.kube_clients import connected
from support.observed_kubernetes import KubernetesScene, facts_of, observed, when_closed
from support.observer_scene import closing_of, put_head_beat, put_session_of
from support.operating import operating
from support.raycluster_scene import Scene, a_group, a_raycluster

SECRET = "hunter2-hunter2"
OOM_KILLED = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-15T19:12:30Z"}


@pytest.fixture
def scene(ray_crds: ControlPlane, kwok: Kwok, namespace: str) -> KubernetesScene:
    return KubernetesScene(ray_crds, namespace)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> ObjectStore:
    return open_store(parse_store_url(f"file://{folder}", {}))


async def test_a_cluster_that_dies_is_explained_and_closed(
    scene: KubernetesScene, folder: Path, store: ObjectStore
) -> None:
    kubeconfig = scene.observers_kubeconfig()
    async with observed(kubeconfig, scene.namespace, folder):
        job = scene.make_job("nightly")
        cluster = scene.make_cluster("train", job)
        head = scene.make_pod(cluster, "train-head", "head", env={"TOKEN": SECRET})
        scene.make_pod(cluster, "train-worker", "worker")
        foreign = await put_session_of(store, ClusterId(scene.namespace, "train", "in another kubernetes"))
        session = await put_session_of(store, cluster, name="session_2026-11-15_19-30-00_1_5")

        async def run() -> bool:
            pods = newest_pods((await facts_of(store, cluster)).pods)
            return [pod.phase for pod in pods if pod.node] == ["Running", "Running"]

        await eventually(run)
        status = {"name": "ray", "image": "ray", "imageID": "", "ready": False, "restartCount": 1}
        scene.patch_status("train-worker", containerStatuses=[{**status, "state": {"terminated": OOM_KILLED}}])
        scene.tell({"kind": "Pod", "name": "train-head", "uid": head["metadata"]["uid"]}, "BackOff", "back-off")
        scene.tell({"kind": "RayCluster", "name": "train", "uid": cluster.uid}, "FailedToCreate", "quota")
        scene.tell(job, "Told", "about the job")
        scene.tell({"kind": "Pod", "name": "foreign", "uid": "somebody else"}, "Foreign", "never kept")

        async def explained() -> bool:
            facts = await facts_of(store, cluster)
            reasons = {one.reason for pod in facts.pods for one in pod.containers}
            return "OOMKilled" in reasons and {"BackOff", "FailedToCreate", "Told"} <= {e.reason for e in facts.events}

        await eventually(explained)
        scene.delete_cluster(cluster)
        closed = await when_closed(store, session)

    facts = await facts_of(store, cluster)
    assert (closed.reason, closed.cluster_uid) == (CLUSTER_DELETED, cluster.uid)
    assert await closing_of(store, foreign) is None
    assert facts.cluster is not None
    assert (facts.cluster.deleted, facts.cluster.owner_kind, facts.cluster.owner_name) == (True, "RayJob", "nightly")
    assert all(pod.deleted for pod in newest_pods(facts.pods))
    assert "Foreign" not in {event.reason for event in facts.events}
    assert "Scheduled" in {event.reason for event in facts.events}  # the scheduler's own, of the newer API
    assert SECRET not in str(facts)


async def test_two_observers_have_one_leader_and_the_second_goes_on_where_the_first_stopped(
    scene: KubernetesScene, folder: Path, store: ObjectStore
) -> None:
    kubeconfig = scene.observers_kubeconfig()
    cluster, unseen = scene.make_cluster("train"), scene.make_cluster("unseen")
    scene.make_pod(cluster, "train-head", "head")
    session, other = await put_session_of(store, cluster), await put_session_of(store, unseen)
    async with observed(kubeconfig, scene.namespace, folder) as first:
        await eventually(lambda: _has_facts(store, cluster))
        await eventually(lambda: _has_facts(store, unseen))
        assert first.is_leading
        assert first.works_beside
        await eventually(lambda: _is_noted(store, cluster, unseen))
    scene.delete_cluster(unseen)  # nobody observes
    async with (
        observed(kubeconfig, scene.namespace, folder) as second,
        observed(kubeconfig, scene.namespace, folder) as third,
    ):
        assert (await when_closed(store, other)).reason == CLUSTER_DELETED
        assert [second.is_leading, third.is_leading].count(True) == 1
        assert (second.works_beside, third.works_beside) == (second.is_leading, third.is_leading)
        assert not first.works_beside
        scene.delete_pod("train-head")
        assert (await when_closed(store, session)).reason == HEAD_LOST
    facts = await facts_of(store, cluster)
    assert [pod.phase for pod in facts.pods if pod.deleted]
    assert len({(pod.uid, pod.at) for pod in facts.pods}) == len(facts.pods)


@pytest.mark.soak
async def test_a_cluster_of_the_operators_is_closed_when_it_is_suspended_and_open_again_when_it_goes_on(
    scene: KubernetesScene, folder: Path, store: ObjectStore
) -> None:
    admin, namespace = scene.plane.admin_kubeconfig, scene.namespace
    async with (
        observed(scene.observers_kubeconfig(), namespace, folder),
        operating(admin, namespace),
        connected(admin) as kube,
    ):
        made = Scene(kube, namespace)
        await made.apply(a_raycluster(a_group(replicas=2)))
        await eventually(lambda: made.is_now("ready"))
        cluster = ClusterId(namespace, "demo", (await made.cluster())["metadata"]["uid"])
        session = await put_session_of(store, cluster)
        await eventually(lambda: _head_runs(store, cluster))
        await made.patch(suspend=True)
        assert (await when_closed(store, session)).reason == CLUSTER_SUSPENDED
        await made.patch(suspend=False)
        await eventually(lambda: made.is_now("ready"))
        await put_head_beat(store, session)  # as under GCS fault tolerance
        await eventually(lambda: _head_runs(store, cluster))
        scene.delete_cluster(cluster)

        async def deleted() -> bool:
            closed = await closing_of(store, session)
            return closed is not None and closed.reason == CLUSTER_DELETED

        await eventually(deleted)


async def test_without_rights_it_waits_and_begins_once_they_are_given(
    scene: KubernetesScene, folder: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "FORBIDDEN_SECONDS", 0.2)
    cluster = scene.make_cluster("train")
    kubeconfig = scene.plane.kubeconfig("observer", token=scene.plane.token(scene.namespace), namespace=scene.namespace)
    async with observed(kubeconfig, scene.namespace, folder) as observation:
        await asyncio.sleep(0.5)
        assert not observation.is_leading
        scene.give_rights()
        await eventually(lambda: _has_facts(store, cluster))


async def _head_runs(store: ObjectStore, cluster: ClusterId) -> bool:
    heads = [pod for pod in newest_pods((await facts_of(store, cluster)).pods) if pod.node_type == "head"]
    return any(pod.phase == "Running" and not pod.deleted for pod in heads)


async def _has_facts(store: ObjectStore, cluster: ClusterId) -> bool:
    return not (await facts_of(store, cluster)).is_empty


async def _is_noted(store: ObjectStore, *clusters: ClusterId) -> bool:
    keys = [stat.key async for stat in store.list("v1/observed/")]
    return all(any(key.endswith(f"~{cluster.uid}") for key in keys) for cluster in clusters)
