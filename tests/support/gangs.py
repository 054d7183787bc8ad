"""RayClusters and RayJobs that batch schedulers are shown."""

from __future__ import annotations

import copy
from typing import Any, Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayjob import RayJob

MARKS: Final = {
    labels.GANG_SCHEDULING_ENABLED: "true",
    labels.PRIORITY_CLASS_NAME: "urgent",
    "volcano.sh/queue-name": "research",
    "yunikorn.apache.org/app-id": "ray-1",
    "yunikorn.apache.org/queue": "root.research",
    "kai.scheduler/queue": "research",
}
"""What users put on their objects, for whichever scheduler."""


def template(cpu: str, memory: str, limits: JSON | None = None, **pod: Any) -> JSON:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": limits or {}}
    return {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.60.0", "resources": resources}], **pod}}


def a_group(name: str, replicas: int, **fields: Any) -> JSON:
    body = template("2", "4Gi", {"nvidia.com/gpu": "1"}, nodeSelector={"pool": "gpu"})
    return {"groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 8, "template": body, **fields}


def a_spec(*groups: JSON, **fields: Any) -> JSON:
    head = {"template": template("1", "2Gi")}
    return {"rayVersion": "2.60.0", "headGroupSpec": head, "workerGroupSpecs": list(groups), **fields}


PLAIN: Final = a_spec(a_group("gpu", 3, minReplicas=1))

CLUSTERS: Final[dict[str, JSON]] = {
    "plain": PLAIN,
    "head-alone": a_spec(),
    "beyond-its-limits": a_spec(a_group("gpu", 20, minReplicas=1)),
    "multi-host": a_spec(a_group("tpu", 2, minReplicas=1, numOfHosts=4), a_group("cpu", 1)),
    "suspended-group": a_spec(a_group("gpu", 3, minReplicas=2, suspend=True), a_group("cpu", 1)),
    "autoscaled": a_spec(a_group("gpu", 3, minReplicas=2), a_group("spot", 2), enableInTreeAutoscaling=True),
    "autoscaled-suspended-group": a_spec(
        a_group("gpu", 3, minReplicas=2, suspend=True), a_group("spot", 2, minReplicas=1), enableInTreeAutoscaling=True
    ),
}
JOBS: Final[dict[str, JSON]] = {
    "kubernetes-job": {"submissionMode": "K8sJobMode"},
    "kubernetes-job-of-the-user": {
        "submissionMode": "K8sJobMode",
        "submitterPodTemplate": template("100m", "128Mi", restartPolicy="Never", nodeSelector={"pool": "small"}),
    },
    "http": {"submissionMode": "HTTPMode"},
    "sidecar": {"submissionMode": "SidecarMode"},
    "interactive": {"submissionMode": "InteractiveMode"},
    "selected-cluster": {"submissionMode": "K8sJobMode", "clusterSelector": {labels.CLUSTER: "shared"}},
}


def a_cluster(spec: JSON, **metadata: Any) -> RayCluster:
    own = {"name": "demo", "namespace": "team", "uid": "cluster-uid", "labels": MARKS, "annotations": {"note": "mine"}}
    return msgspec.convert({"metadata": own | metadata, "spec": copy.deepcopy(spec)}, RayCluster)


def a_job(fields: JSON, state: str = "Initializing", **metadata: Any) -> RayJob:
    own = {"name": "train", "namespace": "team", "uid": "job-uid", "labels": MARKS, "annotations": {"note": "mine"}}
    cluster = {} if "clusterSelector" in fields else {"rayClusterSpec": copy.deepcopy(PLAIN)}
    spec = {"entrypoint": "python job.py", **cluster, **fields}
    status = {"jobId": "train-abcde", "rayClusterName": "train-fghij", "jobDeploymentStatus": state}
    return msgspec.convert({"metadata": own | metadata, "spec": spec, "status": status}, RayJob)
