"""KubeRay's own operator and ours side by side with the same batch scheduler: what the scheduler sees of the same
RayClusters and RayJobs differs only where it was reviewed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace
from bed.kuberay import kuberay_on
from rayclusters.compared_children import Difference, differences
from rayclusters.reviewed_differences import Review
from raykeeper.api import labels
from raykeeper.api.meta import JSON, Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.resources import JOBS, PODS
from raykeeper.operator.schedulers import scheduler_plugins, volcano
from support.conditions import eventually
from support.gangs import CLUSTERS, MARKS, PLAIN
from support.gangs import JOBS as JOB_SPECS
from support.kube_clients import connected
from support.operating import operating, with_scheduler
from support.raycluster_scene import CLUSTERS as CLUSTER_OBJECTS
from support.rayjob_scene import RAY_JOB_OBJECTS

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("kwok", "scheduler_crds", "pods_are_bound")]

REVIEWED: Final = Path(__file__).parent / "kuberay_differences.yaml"
POD_GROUPS: Final[Mapping[str, Resource[JSON]]] = {
    "volcano": volcano.POD_GROUPS.read_as(dict),
    "scheduler-plugins": scheduler_plugins.POD_GROUPS.read_as(dict),
}
STUCK_THERE: Final = {
    "volcano": {"job-selected-cluster"},
    "yunikorn": {"job-selected-cluster"},
    "scheduler-plugins": {f"job-{name}" for name in JOB_SPECS},
    "kai-scheduler": {"job-kubernetes-job", "job-kubernetes-job-of-the-user", "job-selected-cluster"},
}
"""RayJobs that KubeRay leaves in Initializing, or panics over (B19)."""
SETTLE_SECONDS: Final = 120.0


def placeable(body: JSON) -> JSON:
    """Small enough for the nodes that there are, and with a field that says where pods may go all the same."""
    text = json.dumps(body)
    for wide, small in (
        ('"limits": {"nvidia.com/gpu": "1"}', '"limits": {}'),
        ('"nodeSelector": {"pool": "gpu"}', '"tolerations": [{"operator": "Exists"}]'),
        (', "nodeSelector": {"pool": "small"}', ""),
        ('"cpu": "2", "memory": "4Gi"', '"cpu": "20m", "memory": "40Mi"'),
        ('"cpu": "1", "memory": "2Gi"', '"cpu": "10m", "memory": "20Mi"'),
    ):
        text = text.replace(wide, small)
    found: JSON = json.loads(text)
    return found


def clusters() -> dict[str, JSON]:
    metadata = {"labels": MARKS, "annotations": {"note": "mine"}}
    head = {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
    return {
        name: {**head, "metadata": {"name": name, **metadata}, "spec": spec}
        for name, spec in CLUSTERS.items()
        if name != "autoscaled-suspended-group"  # both operators refuse it
    }


def jobs(left_out: set[str]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for case, fields in JOB_SPECS.items():
        name, own = f"job-{case}", {} if "clusterSelector" in fields else {"rayClusterSpec": PLAIN}
        metadata = {"name": name, "labels": MARKS, "annotations": {"note": "mine"}}
        spec = {"entrypoint": "python job.py", **own, **fields}
        if name not in left_out:
            found[name] = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}
    return found


@contextlib.asynccontextmanager
async def two_namespaces(plane: ControlPlane) -> AsyncIterator[tuple[Kube, str, str]]:
    theirs, ours = (f"{side}-{uuid4().hex[:6]}" for side in ("theirs", "ours"))
    for namespace in (theirs, ours):
        await asyncio.to_thread(make_namespace, plane, namespace)
    async with connected(plane.admin_kubeconfig) as kube:
        yield kube, theirs, ours
    for namespace in (theirs, ours):
        await asyncio.to_thread(plane.admin.delete, f"/api/v1/namespaces/{namespace}")


async def seen(kube: Kube, namespace: str, scheduler: str) -> dict[str, list[JSON]]:
    """What a scheduler sees of each RayCluster and RayJob: PodGroups, marks of pods and of submitters."""
    found: dict[str, list[JSON]] = {}
    origins = {item["metadata"]["name"]: origin(item) for item in await kube.list(CLUSTER_OBJECTS, namespace)}
    for pod in await kube.list(PODS.read_as(dict), namespace):
        cluster = pod["metadata"]["labels"].get(labels.CLUSTER)
        if cluster is not None:
            group = pod["metadata"]["labels"][labels.GROUP]
            mine = found.setdefault(origins.get(cluster, cluster), [])
            if not any(one["metadata"]["name"] == group for one in mine):
                mine.append(marks(pod, group))
    for job in await kube.list(JOBS.read_as(dict), namespace):
        found.setdefault(job["metadata"]["name"], []).append(marks(job["spec"]["template"], "submitter"))
    if scheduler in POD_GROUPS:
        for item in await kube.list(POD_GROUPS[scheduler], namespace):
            owner = item["metadata"]["ownerReferences"][0]
            name = origins.get(owner["name"], owner["name"]) if owner["kind"] == "RayCluster" else owner["name"]
            found.setdefault(name, []).append(pod_group(item))
    return {name: without_random(items, origins, name) for name, items in found.items()}


def origin(cluster: JSON) -> str:
    own = cluster["metadata"]
    return str(own["labels"].get(labels.ORIGINATED_FROM_CR_NAME, own["name"]))


def marks(pod: JSON, group: str) -> JSON:
    """The part of a pod that a scheduler reads."""
    metadata, keys = (
        pod["metadata"],
        ("volcano", "yunikorn", "scheduling", "kai.", "applicationId", "queue", "priority"),
    )
    chosen = {
        field: {key: parsed(value) for key, value in (metadata.get(field) or {}).items() if any(k in key for k in keys)}
        for field in ("labels", "annotations")
    }
    return {"kind": "Pod", "metadata": {"name": group, **chosen}, "schedulerName": pod["spec"]["schedulerName"]}


def parsed(value: str) -> Any:
    """Task groups by their names: their order, and that of their fields, means nothing."""
    if not value.startswith("["):
        return value
    return {group["name"]: {key: part for key, part in group.items() if key != "name"} for group in json.loads(value)}


def pod_group(item: JSON) -> JSON:
    metadata = item["metadata"]
    owners = [{key: value for key, value in one.items() if key != "uid"} for one in metadata["ownerReferences"]]
    kept = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
    return {"kind": "PodGroup", "metadata": {**kept, "ownerReferences": owners}, "spec": item["spec"]}


def without_random(items: list[JSON], origins: Mapping[str, str], name: str) -> list[JSON]:
    text = json.dumps(items)
    for cluster, of in origins.items():
        text = text.replace(cluster, "GENERATED") if of == name != cluster else text
    found: list[JSON] = json.loads(text)
    return found


async def settled(kube: Kube, namespace: str, wanted: dict[str, JSON]) -> None:
    """Return once every RayCluster has its pods, and every RayJob what comes with them."""

    left: dict[str, str] = {}

    async def look() -> bool:
        left.clear()
        for item in await kube.list(CLUSTER_OBJECTS, namespace) + await kube.list(RAY_JOB_OBJECTS, namespace):
            name, status = item["metadata"]["name"], item.get("status", {})
            state = status.get("jobDeploymentStatus") or status.get("state") or ""
            if name in wanted and state not in ("ready", "Running", "Waiting"):
                left[name] = state
        return not left

    try:
        await eventually(look, seconds=SETTLE_SECONDS)
    except TimeoutError:
        pytest.fail(f"these do not settle in {namespace}: {left}", pytrace=False)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scheduler", STUCK_THERE)
async def test_a_scheduler_sees_the_same_but_for_what_was_reviewed(scheduler: str, ray_crds: ControlPlane) -> None:
    bodies = clusters() | jobs(STUCK_THERE[scheduler])
    wanted = {name: placeable(body) for name, body in bodies.items()}
    async with two_namespaces(ray_crds) as (kube, theirs, ours):
        for namespace in (theirs, ours):
            for body in wanted.values():
                kind = CLUSTER_OBJECTS if body["kind"] == "RayCluster" else RAY_JOB_OBJECTS
                await kube.create(kind, body, namespace)
        flags = (f"--watch-namespace={theirs}", f"--batch-scheduler={scheduler}", "--reconcile-concurrency=8")
        with kuberay_on(ray_crds) as kuberay:
            await asyncio.to_thread(kuberay.start, *flags, elected=False)
            async with operating(ray_crds.admin_kubeconfig, ours, **with_scheduler(scheduler)):
                await settled(kube, theirs, wanted)
                await settled(kube, ours, wanted)
                found = [await seen(kube, namespace, scheduler) for namespace in (theirs, ours)]
    review = Review.read(REVIEWED)
    for name in wanted:
        of_both = (side.get(name, []) for side in found)
        review.look_at(
            Difference(f"{scheduler} {name}", one.path, one.theirs, one.ours) for one in differences(name, *of_both)
        )
    assert not review.unexplained, "\n".join(map(str, review.unexplained))
