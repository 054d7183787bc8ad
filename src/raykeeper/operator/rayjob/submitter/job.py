"""The Kubernetes Job that submits a job in K8sJobMode. Pure."""

from __future__ import annotations

import copy
from typing import Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayjob import RAY_JOBS, RayJob
from raykeeper.operator.rayjob.submitter.container import SubmitterDefaults, complete_container, default_container
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner

BACKOFF_LIMIT: Final = 2


def submitter_labels(job: RayJob) -> dict[str, str]:
    """By which the Job and its pods are found."""
    return {
        labels.ORIGINATED_FROM_CR_NAME: job.metadata.name,
        labels.ORIGINATED_FROM_CRD: RAY_JOBS.kind,
        labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR,
    }


def submitter_backoff_limit(job: RayJob) -> int:
    """How often a submitter that failed is started again."""
    config = job.spec.submitter_config
    return config.backoff_limit if config and config.backoff_limit is not None else BACKOFF_LIMIT


def desired_submitter(job: RayJob, cluster: RayCluster, defaults: SubmitterDefaults) -> JSON:
    """The Job, under the RayJob's own name, with the user's pod template or a plain one."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": child_metadata(Owner.of(job), job.metadata.name, submitter_labels(job)),
        "spec": {"backoffLimit": submitter_backoff_limit(job), "template": _template(job, cluster, defaults)},
    }


def _template(job: RayJob, cluster: RayCluster, defaults: SubmitterDefaults) -> JSON:
    template: JSON = copy.deepcopy(job.spec.submitter_pod_template or {})
    pod = template.setdefault("spec", {}) or {}
    template["spec"] = pod
    if not pod.get("containers"):
        pod["containers"] = [default_container(job, cluster, defaults)]
    pod.setdefault("restartPolicy", "Never")
    complete_container(job, cluster, pod, pod["containers"][0], f"http://{job.status.dashboard_url}", defaults)
    metadata = template.get("metadata") or {}
    template["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **submitter_labels(job)}}
    return template
