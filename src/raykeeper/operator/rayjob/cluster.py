"""The RayCluster that a RayJob makes. Pure."""

from __future__ import annotations

import copy

from raykeeper.api import labels
from raykeeper.api.containers import JOB_SUBMITTER
from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.podtemplates import containers
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster, RayClusterSpec
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.operator.rayjob.states import SubmissionMode
from raykeeper.operator.rayjob.submitter.container import SubmitterDefaults, complete_container, default_container
from raykeeper.operator.rayjob.submitter.job import submitter_backoff_limit
from raykeeper.operator.shared.children.metadata import NOT_FOR_CHILDREN
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.service_ports import dashboard_port


def desired_cluster(job: RayJob, cluster_spec: JSON, defaults: SubmitterDefaults) -> JSON:
    """The cluster of the present attempt. `cluster_spec` is the spec as the user wrote it, unknown fields and all."""
    mode = job.spec.submission_mode
    annotations = {key: value for key, value in job.metadata.annotations.items() if key not in NOT_FOR_CHILDREN}
    spec = copy.deepcopy(cluster_spec)
    if mode == SubmissionMode.SIDECAR:
        annotations[labels.DISABLE_PROVISIONED_HEAD_RESTART] = "true"
        _add_submitter(job, spec, defaults)
    metadata: JSON = {
        "name": job.status.ray_cluster_name,
        "namespace": job.metadata.namespace,
        "labels": {
            **job.metadata.labels,
            labels.ORIGINATED_FROM_CR_NAME: job.metadata.name,
            labels.ORIGINATED_FROM_CRD: RAY_JOBS.kind,
            labels.JOB_SUBMISSION_MODE: mode,
        },
        "annotations": annotations,
        "ownerReferences": [Owner.of(job).reference()],
    }
    return {"apiVersion": RAY_CLUSTERS.api_version, "kind": RAY_CLUSTERS.kind, "metadata": metadata, "spec": spec}


def _add_submitter(job: RayJob, spec: JSON, defaults: SubmitterDefaults) -> None:
    """A container beside the head that submits the job; a head that ends is not started again."""
    pod = spec["headGroupSpec"]["template"].setdefault("spec", {})
    cluster = future_cluster(job)
    if not any(container.get("name") == JOB_SUBMITTER for container in pod["containers"]):
        pod["containers"].append(default_container(job, cluster, defaults))
    container = next(container for container in pod["containers"] if container.get("name") == JOB_SUBMITTER)
    address = f"http://127.0.0.1:{dashboard_port(cluster)}"
    complete_container(job, cluster, pod, container, address, defaults)
    if defaults.restarts_sidecars:
        container["restartPolicy"] = "OnFailure"
    pod["restartPolicy"] = "Never"


def most_restarts(job: RayJob, cluster: RayClusterSpec) -> int:
    """How often the kubelet may start the submitter beside the head again before it counts as failed."""
    submitters = [one for one in containers(cluster.head_group_spec.template) if one.get("name") == JOB_SUBMITTER]
    if not any(one.get("restartPolicy") == "OnFailure" for one in submitters):
        return 0  # it was made without restarts, whatever the operator would do now
    return submitter_backoff_limit(job)


def future_cluster(job: RayJob) -> RayCluster:
    """The cluster as a struct before it is there."""
    if job.spec.ray_cluster_spec is None:
        raise ValueError(f"RayJob {job.key} has no rayClusterSpec")
    metadata = ObjectMeta(name=job.status.ray_cluster_name, namespace=job.metadata.namespace)
    return RayCluster(metadata, job.spec.ray_cluster_spec)
