"""The observer on a real API server: a RayJob that times out, is deleted or never starts is named in its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from raykeeper.history.report.model import Outcome
from raykeeper.history.report.unstarted import report_on_rayjob, report_on_unstarted
from raykeeper.history.store.rayjobs import RayJobReader
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.observed_kubernetes import RBAC, KubernetesScene, documented_rules, facts_of, observed

TIMED_OUT = {"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "30 s have passed"}


@pytest.fixture
def scene(ray_crds: ControlPlane, namespace: str) -> KubernetesScene:
    return KubernetesScene(ray_crds, namespace)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> ObjectStore:
    return open_store(parse_store_url(f"file://{folder}", {}))


class Records:
    """What the store says of the RayJobs of a namespace."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self._reader, self._namespace = RayJobReader(store), namespace

    async def find(self, name: str) -> RayJobRecord | None:
        return next(iter(await self._reader.named(self._namespace, name)), None)

    async def when(self, name: str, *statuses: str) -> RayJobRecord:
        """The record, once these are its last states."""

        async def is_so() -> bool:
            record = await self.find(name)
            told = [one.deployment_status for one in record.states] if record else []
            return told[-len(statuses) :] == list(statuses)

        await eventually(is_so)
        record = await self.find(name)
        assert record is not None
        return record


async def test_a_rayjob_that_times_out_is_named_through_a_restart_of_the_observer_and_after_its_deletion(
    scene: KubernetesScene, folder: Path, store: ObjectStore
) -> None:
    kubeconfig, records = scene.observers_kubeconfig(), Records(store, scene.namespace)
    slow, gone = scene.make_job("slow"), scene.make_job("gone")
    cluster = scene.make_cluster("slow-aaaaa", slow)
    async with observed(kubeconfig, scene.namespace, folder):
        started = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "jobId": "slow-xxxxx"}
        scene.set_job_status("slow", rayClusterName="slow-aaaaa", **started)
        scene.set_job_status("gone", rayClusterName="gone-bbbbb", **started)
        scene.tell(gone, "Told", "about the job")
        await records.when("slow", "Running")
        await records.when("gone", "Running")

        async def is_told() -> bool:
            record = await records.find("gone")
            return record is not None and bool(record.warnings)

        await eventually(is_told)
    scene.set_job_status("slow", **TIMED_OUT)
    scene.delete_job("gone")
    async with observed(kubeconfig, scene.namespace, folder):
        timed_out = await records.when("slow", "Running", "Failed")

        async def is_missed() -> bool:
            record = await records.find("gone")
            return record is not None and record.was_away_at_deletion

        await eventually(is_missed)
        scene.delete_job("slow")
        scene.delete_cluster(cluster)

    assert timed_out.is_final
    assert [one.name for one in (await facts_of(store, cluster)).rayjobs] == ["slow"]
    by_name = await report_on_rayjob(store, timed_out)
    by_cluster = await report_on_unstarted(store, scene.namespace, "slow-aaaaa")
    assert by_cluster is not None
    assert by_name.outcome is by_cluster.outcome is Outcome.FAILED
    assert by_name.root_cause is not None
    assert by_name.root_cause.title == "RayJob slow ran longer than its activeDeadlineSeconds"
    assert by_name.root_cause.evidence[0].text == "DeadlineExceeded: 30 s have passed"
    assert by_cluster.causes == by_name.causes
    deleted = await records.find("gone")
    assert deleted is not None
    report = await report_on_rayjob(store, deleted)
    assert report.outcome is Outcome.STOPPED
    assert report.causes[0].title == "RayJob gone was deleted before it ended"
    assert [stat.key async for stat in store.list("v1/observed-rayjobs/")] == []


async def test_a_role_from_before_costs_the_records_of_rayjobs_alone(
    scene: KubernetesScene, folder: Path, store: ObjectStore
) -> None:
    kubeconfig = scene.observers_kubeconfig()
    rules = [
        {**rule, "resources": [one for one in rule["resources"] if one != "rayjobs"]} for rule in documented_rules()
    ]
    scene.plane.admin.patch(f"{RBAC}/namespaces/{scene.namespace}/roles/observer", {"rules": rules})
    job = scene.make_job("nightly")
    cluster = scene.make_cluster("nightly-aaaaa", job)
    async with observed(kubeconfig, scene.namespace, folder):
        scene.tell(job, "Told", "about the job")

        async def has_facts() -> bool:
            facts = await facts_of(store, cluster)
            return facts.cluster is not None and [one.reason for one in facts.events] == ["Told"]

        await eventually(has_facts)
    assert await Records(store, scene.namespace).find("nightly") is None
