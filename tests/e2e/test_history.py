"""What Ray did in pods is all there once they are gone: collectors as sidecars, a bucket, and then a history server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bed.node.real_node import RealNode
from e2e.collected_scene import CollectedScene, PodBucket, a_collected_cluster, collected_scenes, with_grace
from e2e.history_process import history_process
from e2e.ray_scene import WORKER_RESOURCES, WORKERS, a_template
from e2e.stored_objects import copy_store
from e2e.witness import Witness, assert_all_is_there, witness
from raykeeper.api import labels
from raykeeper.clock import SystemClock
from raykeeper.history.store.heartbeats import Heartbeats, StoreClock
from raykeeper.history.store.session_state import State
from raykeeper.layout.keys import SessionId
from raykeeper.storage.opening import open_store
from support.raycluster_scene import CLUSTERS
from support.stored_sessions import StoredSession


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
    # Samples since the last heartbeat die with a head that is taken by force.
    assert_nodes_were_sampled(tmp_path / "store", told[0])


async def end_after_a_job(scene: CollectedScene) -> Witness:
    """What the cluster told, which then ended as its name says."""
    await scene.turns("ready")
    told = await witness(scene)
    ips = await scene.pod_ips()
    await scene.is_sampled(ips.values())
    if scene.key.name == "beheaded":
        await scene.force_delete_pod(labels.HEAD_GROUP)
    await scene.kube.delete(CLUSTERS, scene.key)
    await scene.is_silent(ips.values())
    return told


async def state_of(bucket: PodBucket, session: SessionId) -> State:
    store, clock = open_store(bucket.settings), SystemClock()
    return (await Heartbeats(store, clock, StoreClock(store, clock)).state(session)).state


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


def assert_nodes_were_sampled(store: Path, told: Witness) -> None:
    """By Ray's own agent, which sees the limits of Ray's container; the sidecar beside it has others."""
    stored = StoredSession(store, told.session)
    for node_id in stored.log_nodes():
        node = stored.node(node_id)
        assert node is not None
        rows = [row for row in stored.samples(node_id).values() if row["memory"] is not None]
        assert rows, f"{node.pod} was never sampled"
        limit_mib = 3 << 10 if node.role == "head" else 2 << 10
        assert {row["memory_total"] for row in rows} == {limit_mib}
        assert all(0 < row["memory"] < row["memory_total"] for row in rows)
        assert all(0 < row["disk"] < row["disk_total"] for row in rows)
        # How fast something is needs two looks, ten seconds apart; some of these nodes do not live that long.
        assert len(rows) < 3 or any(row["received"] is not None for row in rows)
