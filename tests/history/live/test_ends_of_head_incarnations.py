"""Real Ray with GCS fault tolerance, seen by the observer: a session with several heads, each killed in its way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.rayenv import RAY_VERSION
from bed.redis import Redis
from bed.waiting import wait_until
from collector.whole.ray_lives import CLUSTER, RayLife, a_ray_life
from history.live.ends import (
    GUESSED,
    NOTICED_SECONDS,
    SEEN,
    WAIT_SECONDS,
    asked,
    check_crash,
    gone_at,
    new_folder,
    start_work,
    stored,
)
from raykeeper.layout.keys import ClusterId
from raykeeper.layout.records import HEAD_LOST
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.observed_kubernetes import NOBODY, KubernetesScene, facts_of, history, when_closed

HEAD_POD = f"{CLUSTER}-head-x7k2p"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="a worker's own folder needs a mount namespace, so root"),
]


class Scene:
    """A Ray head and its collector as processes here, and as a pod of a RayCluster in Kubernetes."""

    def __init__(self, kubernetes: KubernetesScene, cluster: ClusterId, life: RayLife) -> None:
        self.kubernetes = kubernetes
        self.cluster = cluster
        self.life = life
        self.store = open_store(parse_store_url(f"file://{life.folder}/store", {}))

    def start_head(self) -> None:
        self.life.head = self.life.cluster.start_head(self.life.head_sink)

    def say_oom_killed(self, restarts: int) -> None:
        """What the kubelet says after the kernel killed Ray's container and it was started again."""
        now = datetime.now(UTC)
        died = {"reason": "OOMKilled", "exitCode": 137, "startedAt": _rfc3339(now - timedelta(minutes=1))}
        container = {
            **{"name": "ray", "image": "rayproject/ray:2.60.0", "imageID": "", "ready": True},
            "restartCount": restarts,
            "state": {"running": {"startedAt": _rfc3339(now)}},
            "lastState": {"terminated": {**died, "finishedAt": _rfc3339(now)}},
        }
        self.kubernetes.patch_status(HEAD_POD, phase="Running", containerStatuses=[container])


@pytest.fixture
def scene(
    ray_crds: ControlPlane, namespace: str, redis: Redis, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """A head at work on a job, with Redis behind its GCS and a history server that watches Kubernetes."""
    kubernetes, folder = KubernetesScene(ray_crds, namespace), new_folder(request.config)
    (folder / "store").mkdir()  # a server refuses a store that is not there
    cluster = kubernetes.make_cluster(CLUSTER)
    kubernetes.make_pod(cluster, HEAD_POD, "head", scheduler=NOBODY)
    kubernetes.patch_status(HEAD_POD, phase="Running")
    observing = (
        f"--store=file://{folder}/store",
        f"--kubeconfig={kubernetes.observers_kubeconfig()}",
        f"--kubernetes-namespaces={namespace}",
    )
    fault_tolerant = {"RAY_REDIS_ADDRESS": redis.address, "RAY_external_storage_namespace": cluster.uid}
    names = {"namespace": namespace, "cluster_uid": cluster.uid}
    with (
        a_ray_life(folder, RAY_VERSION, fault_tolerant, **names) as life,
        history(tmp_path / "observer", observing, {}),
    ):
        life.head_collector.start().wait_for("listening for Ray")
        made = Scene(kubernetes, cluster, life)
        made.start_head()
        start_work(life)
        yield made


def test_a_session_crashes_goes_on_with_the_next_head_and_crashes_when_its_pod_is_lost(
    scene: Scene, tmp_path: Path
) -> None:
    life = scene.life
    session = life.stored.id
    [first_head] = life.head.node_ids()
    # Ray's container is killed beside its collector.
    killed_at = datetime.now(UTC)
    life.head.kill()
    scene.say_oom_killed(restarts=1)
    wait_until("the death is recorded", lambda: gone_at(life, session, first_head) is not None, NOTICED_SECONDS)
    wait_until("the pod's facts are stored", lambda: _knows_of_oom(scene), WAIT_SECONDS)
    assert datetime.now(UTC) - killed_at < timedelta(seconds=NOTICED_SECONDS)
    check_crash(life, session, killed_at, SEEN, tmp_path / "noticed", rule="oom_killed_container")
    # It starts again in its pod: the GCS finds its state in Redis, and the session goes on.
    scene.start_head()
    assert life.stored.id == session
    [second_head] = set(life.head.node_ids()) - {first_head}
    start_work(life, "stays-again")
    wait_until("the first head has its end", lambda: stored(life, session).end(first_head) is not None, WAIT_SECONDS)
    running = asked(life, session, tmp_path / "running", "stays")
    for told in (running["session"], running["overview"]["facts"]):
        assert (told["state"], told.get("ended_at")) == ("running", None)
    states = {node["node_id"]: node["state"] for node in running["nodes"]["data"]["result"]["result"]}
    assert states == {first_head: "DEAD", second_head: "ALIVE"}
    statuses = {job["submission_id"]: job["status"] for job in running["jobs"] if job["submission_id"]}
    assert statuses == {"stays": "FAILED", "stays-again": "RUNNING"}
    assert running["job_report"]["root_cause"]["rule"] == "oom_killed_container"
    # The whole pod is lost with its collector.
    life.head_collector.kill()
    killed_at = datetime.now(UTC)
    life.head.kill()
    scene.kubernetes.delete_pod(HEAD_POD)
    assert asyncio.run(when_closed(scene.store, session, NOTICED_SECONDS)).reason == HEAD_LOST
    crash = {"job_name": "stays-again", "rule": "deleted_pod"}
    check_crash(life, session, killed_at, GUESSED, tmp_path / "closed", **crash)
    # Its collector comes back on the same disk, ends, and the cluster is deleted.
    life.head_collector.start().wait_for("listening for Ray")
    wait_until("the death is recorded", lambda: gone_at(life, session, second_head) is not None, WAIT_SECONDS)
    check_crash(life, session, killed_at, GUESSED, tmp_path / "restarted", **crash)
    assert life.head_collector.end() == 0, life.head_collector.output.read_text()
    scene.kubernetes.delete_cluster(scene.cluster)
    check_crash(life, session, killed_at, GUESSED, tmp_path / "ended", **crash)


def _knows_of_oom(scene: Scene) -> bool:
    facts = asyncio.run(facts_of(scene.store, scene.cluster))
    return any("OOMKilled" in (one.reason, one.last_reason) for pod in facts.pods for one in pod.containers)


def _rfc3339(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
