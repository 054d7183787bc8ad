"""Failures in which Kubernetes has a part, on the real node: everything that explains them is in the store.

`RECORD=1` keeps what was stored in `tests/golden/failures/`, for the tests of reports.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from bed.fixtures import make_namespace
from bed.node.real_node import RealNode
from bed.waiting import wait_until
from e2e.collected_scene import CollectedScene, PodBucket, collected_scenes
from e2e.failing_clusters import FAILURES, Failure, programs
from e2e.history_process import history_process, observing
from e2e.stored_objects import copy_store
from raykeeper.history.store.kube_facts import KubeFacts, KubeFactsReader
from raykeeper.storage.opening import open_store
from recording.archives import pack_store
from support.conditions import eventually
from support.raycluster_scene import CLUSTERS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]

NAMESPACE = "recorded"
FACTS_SECONDS = 60.0
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
URGENT = {"metadata": {"name": "urgent"}, "value": 1000, "description": "goes before Ray"}


@pytest.fixture
def home(real_node: RealNode) -> Iterator[str]:
    """A namespace of a fixed name, since recordings are named after it, with what all failures need."""
    admin, path = real_node.plane.admin, f"/api/v1/namespaces/{NAMESPACE}"
    make_namespace(real_node.plane, NAMESPACE)
    admin.post(f"{path}/configmaps", programs())
    if not admin.answers(f"{PRIORITIES}/urgent"):
        admin.post(PRIORITIES, URGENT)
    yield NAMESPACE
    admin.delete(path)
    wait_until("the namespace is gone", lambda: not admin.answers(path), FACTS_SECONDS)


@pytest.fixture(params=FAILURES, ids=[failure.name for failure in FAILURES])
def failure(request: pytest.FixtureRequest) -> Failure:
    found: Failure = request.param
    return found


@pytest.fixture
async def scene(real_node: RealNode, home: str, failure: Failure) -> AsyncIterator[CollectedScene]:
    async with collected_scenes(real_node.plane, home, failure.name) as (made,):
        yield made


async def test_what_kubernetes_says_about_a_failure_is_stored_beside_what_ray_says(
    scene: CollectedScene, failure: Failure, pod_bucket: PodBucket, tmp_path: Path
) -> None:
    with history_process(pod_bucket, tmp_path, *observing(scene.plane, scene.namespace)):
        await scene.apply(failure.cluster(pod_bucket))
        uid = (await scene.cluster())["metadata"]["uid"]
        await failure.happen(scene)
        await facts_are(scene, pod_bucket, uid, failure.is_told)
        ips = await scene.pod_ips()
        await scene.kube.delete(CLUSTERS, scene.key)
        await scene.is_silent(ips.values())
        await facts_are(scene, pod_bucket, uid, lambda facts: bool(facts.cluster and facts.cluster.deleted))
        await eventually(lambda: last_session_is_closed(pod_bucket), seconds=FACTS_SECONDS)
    await copy_store(pod_bucket.settings, tmp_path / "store")
    if os.environ.get("RECORD"):
        pack_store(tmp_path / "store", failure.name)


async def facts_are(scene: CollectedScene, bucket: PodBucket, uid: str, is_told: Callable[[KubeFacts], bool]) -> None:
    """Return once the observer has stored what is looked for."""

    async def look() -> bool:
        return is_told(await KubeFactsReader(open_store(bucket.settings)).read(scene.namespace, scene.key.name, uid))

    await eventually(look, seconds=FACTS_SECONDS)


async def last_session_is_closed(bucket: PodBucket) -> bool:
    """Whether the observer has written down the end of the newest session, if there is any."""
    keys = {found.key async for found in open_store(bucket.settings).list("v1/data/")}
    sessions = sorted(key.removesuffix("session.json") for key in keys if key.endswith("/session.json"))
    return not sessions or f"{sessions[-1]}closed.json" in keys
