"""Ray objects and pods on a real API server, in any state: a test says what an operator and a kubelet would."""

from __future__ import annotations

from typing import Any

from bed.control_plane import ControlPlane
from bed.rest import Json
from support.raycluster_scene import a_group, a_raycluster


def put_cluster(
    plane: ControlPlane, namespace: str, name: str = "demo", status: Json | None = None, **spec: Any
) -> Json:
    """A RayCluster with this status."""
    path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    made = plane.admin.post(path, a_raycluster(a_group(), name=name, **spec))
    if status is not None:
        plane.admin.patch(f"{path}/{name}/status", {"status": status})
    return made


def put_job(plane: ControlPlane, namespace: str, name: str, status: Json) -> None:
    """A RayJob with this status."""
    path = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    spec = {"entrypoint": "python job.py", "rayClusterSpec": a_raycluster()["spec"]}
    plane.admin.post(path, {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": spec})
    plane.admin.patch(f"{path}/{name}/status", {"status": status})


def put_pod(
    plane: ControlPlane, namespace: str, name: str, cluster: str, role: str = "worker", env: Any = (), **status: Any
) -> None:
    """A Ray pod with this status."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": role, "ray.io/group": "small"}
    container = {"name": "ray", "image": "ray", "env": list(env)}
    spec = {"containers": [container], "schedulerName": "nobody"}  # so that nobody changes its status
    plane.admin.post(path, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    plane.admin.patch(f"{path}/{name}/status", {"status": status})


def put_event(plane: ControlPlane, namespace: str, kind: str, name: str, reason: str, note: str) -> None:
    """A Warning about an object."""
    body = {
        "metadata": {"generateName": f"{name}-"},
        "eventTime": "2026-11-17T20:00:00.000000Z",
        "type": "Warning",
        "reason": reason,
        "note": note,
        "action": "Test",
        "reportingController": "raykeeper.io/test",
        "reportingInstance": "test",
        "regarding": {"kind": kind, "name": name, "namespace": namespace},
    }
    plane.admin.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)


def a_condition(kind: str, status: str, message: str = "", reason: str = "Because") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-17T20:00:00Z",
    }


def image_pull_back_off(container: str = "ray") -> Json:
    """A container status."""
    waiting = {"reason": "ImagePullBackOff", "message": "no such tag"}
    return {
        "name": container,
        "ready": False,
        "restartCount": 0,
        "image": "ray",
        "imageID": "",
        "state": {"waiting": waiting},
    }


def put_sick_cluster(plane: ControlPlane, namespace: str, env: Any = (), note: str = "cannot pull") -> None:
    """A cluster whose worker cannot have its image."""
    conditions = [a_condition("HeadPodReady", "True"), a_condition("Ready", "False", "1 of 1 workers not ready")]
    put_cluster(plane, namespace, status={"state": "", "desiredWorkerReplicas": 1, "conditions": conditions})
    ready = [{"type": "Ready", "status": "True"}]
    put_pod(plane, namespace, "demo-head", "demo", "head", phase="Running", conditions=ready)
    put_pod(plane, namespace, "demo-worker", "demo", env=env, containerStatuses=[image_pull_back_off()])
    put_event(plane, namespace, "Pod", "demo-worker", "Failed", note)
