"""What Ray did in pods is all there once they are gone: collectors as sidecars, a bucket, and then a history server."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bed.node.real_node import RealNode
from e2e.collected_scene import JOB, CollectedScene, PodBucket, a_collected_cluster, collected_scenes, with_grace
from e2e.history_process import History, SessionHistory, history_process
from e2e.ray_scene import WORKER_RESOURCES, WORKERS, a_template
from e2e.stored_objects import copy_store
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.clock import SystemClock
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import SessionId
from raykeeper.storage.opening import open_store
from support.raycluster_scene import CLUSTERS
from support.stored_sessions import StoredSession

PROGRAM = """
import ray, time
ray.init()

@ray.remote(num_cpus=1, max_retries=0)
def work(number):
    print('working on', number)
    if number % 5 == 0:
        raise ValueError(f'cannot do {number}')
    return number

failed = 0
for reference in [work.remote(number) for number in range(20)]:
    try:
        ray.get(reference)
    except ValueError:
        failed += 1
time.sleep(2)  # workers end with their job, and tell once a second what they did
raise SystemExit(f'{failed} tasks failed')
"""
ALL_TASKS = {"detail": "1", "limit": "10000"}
FACTS = (
    "name",
    "state",
    "job_id",
    "node_id",
    "worker_id",
    "error_type",
    "error_message",
    "start_time_ms",
    "end_time_ms",
)
"""What must be told of a task after its cluster as before."""


@dataclass(frozen=True)
class Witness:
    """What a cluster's own dashboard said at last, and what its collectors had promised to keep."""

    session: SessionId
    job: JSON
    job_log: str
    tasks: dict[str, Any]
    acknowledged: dict[str, int]
    uid: str


async def witness(scene: CollectedScene) -> Witness:
    """Run the job, and listen until everything about it is told."""
    await scene.submit(f"python -c {shlex.quote(PROGRAM)}")
    job = await scene.finished()
    acknowledged = await scene.acknowledged_events()
    return Witness(
        session=SessionId(scene.namespace, scene.key.name, (await scene.ask("/api/version"))["session_name"]),
        job=job,
        job_log=(await scene.ask(f"/api/jobs/{JOB}/logs"))["logs"],
        tasks=task_facts(await scene.ask("/api/v0/tasks", **ALL_TASKS)),
        acknowledged=acknowledged,
        uid=(await scene.cluster())["metadata"]["uid"],
    )


def task_facts(answer: Any) -> dict[str, Any]:
    tasks = answer["data"]["result"]["result"]
    return {task["task_id"]: {name: task[name] for name in FACTS} for task in tasks}


@pytest.fixture
async def scenes(real_node: RealNode, node_namespace: str) -> AsyncIterator[list[CollectedScene]]:
    async with collected_scenes(real_node.plane, node_namespace, "deleted", "beheaded") as made:
        yield made


async def test_a_deleted_cluster_and_one_whose_head_was_taken_by_force_are_all_there_in_their_history(
    scenes: list[CollectedScene], pod_bucket: PodBucket, tmp_path: Path
) -> None:
    deleted, beheaded = scenes
    group = {"groupName": WORKERS, "replicas": 1, "template": with_grace(a_template(WORKER_RESOURCES, {}))}
    await deleted.apply(a_collected_cluster("deleted", pod_bucket, group, head_cpus=0))
    await beheaded.apply(a_collected_cluster("beheaded", pod_bucket, head_cpus=1))
    # Both at once: most of the time Ray starts.
    told = await asyncio.gather(*(end_after_a_job(scene) for scene in scenes))
    with history_process(pod_bucket, tmp_path) as history:
        for one in told:
            await asyncio.to_thread(assert_all_is_there, history, one)
    await copy_store(pod_bucket.settings, tmp_path / "store")
    for one in told:
        assert_nothing_acknowledged_is_lost(tmp_path / "store", one)
        assert await state_of(pod_bucket, one.session) is State.ENDED


async def end_after_a_job(scene: CollectedScene) -> Witness:
    """What the cluster told, which then ended as its name says."""
    await scene.turns("ready")
    told = await witness(scene)
    ips = await scene.pod_ips()
    if scene.key.name == "beheaded":
        await scene.force_delete_pod(labels.HEAD_GROUP)
    await scene.kube.delete(CLUSTERS, scene.key)
    await scene.is_silent(ips.values())
    return told


async def state_of(bucket: PodBucket, session: SessionId) -> State:
    store, clock = open_store(bucket.settings), SystemClock()
    return (await Heartbeats(store, clock, StoreClock(store, clock)).state(session)).state


def assert_all_is_there(history: History, told: Witness) -> None:
    now = history.of(told.session)
    assert task_facts(now.ask("/api/v0/tasks", **ALL_TASKS)) == told.tasks
    failed = [task for task in told.tasks.values() if task["state"] == "FAILED"]
    assert (len(told.tasks), len(failed)) == (20, 4)
    assert now.ask(f"/api/jobs/{JOB}") == told.job
    assert told.job["status"] == "FAILED"
    assert now.ask(f"/api/jobs/{JOB}/logs")["logs"] == told.job_log
    assert "4 tasks failed" in told.job_log
    assert_logs_of_tasks(now, told)


def assert_logs_of_tasks(now: SessionHistory, told: Witness) -> None:
    """The output of each task is the line that it printed."""
    for task in told.tasks:
        assert b"working on" in now.text("/api/v0/logs/file", task_id=task), task


def assert_nothing_acknowledged_is_lost(store: Path, told: Witness) -> None:
    stored = StoredSession(store, told.session)
    nodes = {node_id: stored.node(node_id) for node_id in stored.log_nodes()}
    kept = {node.pod: len(stored.events()[node_id]) for node_id, node in nodes.items() if node}
    assert all(kept[pod] >= count for pod, count in told.acknowledged.items()), (kept, told.acknowledged)
    ends = {node_id: stored.end(node_id) for node_id in nodes}
    assert all(end and end.is_complete for end in ends.values())
    assert stored.catalog() >= {"start", "end"}
    record = stored.record()
    assert record is not None
    assert record.cluster_uid == told.uid
