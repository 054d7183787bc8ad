"""Failures of real clusters in which Kubernetes has a part: what is applied, what happens, and how it must be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.node.image import BUSYBOX_IMAGE
from bed.node.settings import CLAIMED_CPUS
from e2e.cluster import a_pod
from e2e.collected_scene import CollectedScene, PodBucket, a_collected_cluster
from e2e.ray_scene import WORKER_RESOURCES, WORKERS, a_template
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.history.store.kube_facts import KubeFacts

PROGRAMS = Path(__file__).with_name("programs")
APPS = "/app"
QUICK = {  # it is over before the intervals of a real cluster have passed
    "RAYKEEPER_SEAL_AGE": "500ms",
    "RAYKEEPER_IDLE_SEAL_AGE": "1s",
    "RAYKEEPER_USER_LOG_INTERVAL": "500ms",
    "RAY_COLLECTOR_POLL_INTERVAL": "2s",
}
NO_MEMORY_MONITOR = {"RAY_memory_monitor_refresh_ms": "0"}
"""Ray's own would kill a task before the kernel kills the container."""
MOST_CPUS = str(CLAIMED_CPUS * 5 // 8)
"""More than half of the node, so that two such pods do not fit."""
ErrorFormat = Callable[[KubeFacts], bool]


@dataclass(frozen=True)
class Failure:
    """One kind of failure."""

    name: str
    group: Callable[[], JSON]
    happen: Callable[[CollectedScene], Awaitable[None]]
    is_told: ErrorFormat
    """Whether what Kubernetes said is among the facts."""
    head: Callable[[JSON], JSON] = lambda cluster: cluster
    """What is changed in the cluster before it is applied."""

    def cluster(self, bucket: PodBucket) -> JSON:
        """The RayCluster, named after what happens to it; its head has no CPU and the programs."""
        made = a_collected_cluster(self.name, bucket, self.group(), head_cpus=0, **QUICK)
        template = made["spec"]["headGroupSpec"]["template"]["spec"]
        template["containers"][0]["volumeMounts"] = [{"name": "app", "mountPath": APPS}]
        template["volumes"] = [{"name": "app", "configMap": {"name": "app"}}]
        template["terminationGracePeriodSeconds"] = 5
        return self.head(made)


def programs() -> JSON:
    """The ConfigMap with the programs, which heads show below `/app`."""
    data = {file.name: file.read_text() for file in PROGRAMS.glob("*.py")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": data}


def workers(env: dict[str, str] | None = None, **resources: dict[str, str]) -> JSON:
    """A worker group of one pod that has two CPUs for Ray, and is given a second to end."""
    merged = {name: {**WORKER_RESOURCES[name], **resources.get(name, {})} for name in WORKER_RESOURCES}
    template = a_template(merged, env or {})
    return {"groupName": WORKERS, "replicas": 1, "rayStartParams": {"num-cpus": "2"}, "template": template}


def caching_workers() -> JSON:
    """Workers whose first process takes more memory than the container may have: the kernel kills it, and so all.

    With cgroups v2 the kubelet has the kernel kill a whole container whichever of its processes was greedy.
    """
    group = workers(NO_MEMORY_MONITOR, limits={"memory": "1Gi"}, requests={"memory": "512Mi"})
    entrypoint = (PROGRAMS / "caching_entrypoint.py").read_text()
    group["template"]["spec"]["containers"][0]["command"] = ["python", "-c", entrypoint]
    return group


async def simulating(scene: CollectedScene) -> None:
    """Return once both tasks run on the worker, and the collectors know."""
    await scene.turns("ready")
    await scene.submit(f"python {APPS}/long_simulation.py")

    async def both_run() -> bool:
        answer = await scene.ask("/api/v0/tasks", detail="1")
        tasks = answer["data"]["result"]["result"] if answer else []
        return [task["state"] for task in tasks] == ["RUNNING", "RUNNING"]

    await scene.sees(both_run)
    await scene.acknowledged_events()


async def lose_worker(scene: CollectedScene) -> None:
    await simulating(scene)
    await scene.force_delete_pod(WORKERS)
    await scene.finished()


async def lose_head(scene: CollectedScene) -> None:
    await simulating(scene)
    ips = await scene.pod_ips()
    gone = await scene.force_delete_pod(labels.HEAD_GROUP)
    await scene.is_silent([ips[gone]])


async def evict_worker(scene: CollectedScene) -> None:
    await simulating(scene)
    await scene.evict_pod(WORKERS)
    await scene.finished()


async def preempt_worker(scene: CollectedScene) -> None:
    await simulating(scene)
    urgent = a_pod("urgent", ["sleep", "600"], image=BUSYBOX_IMAGE, resources={"requests": {"cpu": MOST_CPUS}})
    urgent["spec"]["priorityClassName"] = "urgent"
    await scene.create(urgent)
    await scene.finished()


async def run_out_of_memory(scene: CollectedScene) -> None:
    await scene.turns("ready")
    await scene.submit(f"python {APPS}/long_simulation.py")
    await scene.finished()


async def wait_in_vain(scene: CollectedScene) -> None:
    async def has_head() -> bool:
        return bool(await scene.ready(labels.HEAD_GROUP))

    await scene.sees(has_head)
    await scene.submit(f"python {APPS}/impatient_embedding.py")
    await scene.finished()


async def never_start(scene: CollectedScene) -> None:
    async def is_waiting() -> bool:
        (head,) = await scene.group(labels.HEAD_GROUP) or [{"status": {}}]
        states = [status["state"] for status in head["status"].get("containerStatuses", [])]
        return any(
            state.get("waiting", {}).get("reason") in ("ErrImageNeverPull", "ImagePullBackOff") for state in states
        )

    await scene.sees(is_waiting)


def without_image(cluster: JSON) -> JSON:
    """The same cluster with a head whose image nobody has."""
    ray: dict[str, Any] = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    ray.update(image="registry.example/team/ray:2.60.0-typo", imagePullPolicy="Never")
    return cluster


def pod_says(reason: str) -> ErrorFormat:
    """A pod, or a container of one, that is or was in a state for this reason."""

    def is_told(facts: KubeFacts) -> bool:
        of_pods = {text for pod in facts.pods for text in (pod.reason, pod.disruption)}
        of_containers = {text for pod in facts.pods for one in pod.containers for text in (one.reason, one.last_reason)}
        return reason in of_pods | of_containers

    return is_told


def event_says(reason: str) -> ErrorFormat:
    return lambda facts: any(event.reason == reason for event in facts.events)


def is_deleted(node_type: str) -> ErrorFormat:
    return lambda facts: any(pod.deleted and pod.node_type == node_type for pod in facts.pods)


FAILURES = (
    Failure("pod-lost", workers, lose_worker, is_deleted("worker")),
    Failure("head-pod-lost", workers, lose_head, is_deleted("head")),
    Failure("pod-evicted", workers, evict_worker, pod_says("EvictionByEvictionAPI")),
    Failure(
        "pod-preempted",
        lambda: workers(requests={"cpu": MOST_CPUS}, limits={"cpu": MOST_CPUS}),
        preempt_worker,
        event_says("Preempted"),
    ),
    Failure(
        "group-unschedulable",
        lambda: workers(requests={"cpu": "40"}, limits={"cpu": "40"}),
        wait_in_vain,
        event_says("FailedScheduling"),
    ),
    Failure("head-image-missing", workers, never_start, pod_says("ErrImageNeverPull"), without_image),
    Failure("container-oom-killed", caching_workers, run_out_of_memory, pod_says("OOMKilled")),
)
