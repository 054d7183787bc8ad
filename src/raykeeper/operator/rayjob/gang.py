"""The pods of a RayJob that a batch scheduler starts together: those of its cluster, and its submitter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from raykeeper.api.containers import JOB_SUBMITTER
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import containers, pod_spec
from raykeeper.api.raycluster import RayClusterSpec
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob.cluster import future_cluster
from raykeeper.operator.rayjob.facts import ClusterFacts
from raykeeper.operator.rayjob.states import (
    COMPLETE,
    FAILED,
    INITIALIZING,
    RETRYING,
    RUNNING,
    SUSPENDED,
    SUSPENDING,
    WAITING,
    SubmissionMode,
)
from raykeeper.operator.rayjob.submitter.container import SubmitterDefaults, default_container
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Scheduler
from raykeeper.operator.schedulers.pod_groups import plan_gang
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.children.plan import ChildAction
from raykeeper.operator.shared.owner import Owner

STARTED: Final = frozenset({INITIALIZING, WAITING, RUNNING})
AT_REST: Final = frozenset({SUSPENDING, SUSPENDED, RETRYING, COMPLETE, FAILED})


def job_gang(job: RayJob, defaults: SubmitterDefaults) -> Gang:
    """All pods of one attempt. A job on another's cluster starts only its submitter."""
    owner, spec, mode = Owner.of(job), job.spec.ray_cluster_spec, job.spec.submission_mode
    if spec is None or job.spec.cluster_selector:
        return Gang(owner)
    if mode == SubmissionMode.SIDECAR:
        return Gang(owner, _with_submitter(job, spec, defaults))
    return Gang(owner, spec, _submitter(job, defaults) if mode == SubmissionMode.K8S_JOB else None)


def as_begun(job: RayJob, cluster: ClusterFacts | None) -> RayJob:
    """The job with the cluster that its present attempt has: a spec that was edited since counts for the next one."""
    if cluster is None or not cluster.is_owned or cluster.is_going or job.spec.cluster_selector:
        return job
    mode = cluster.submission_mode or job.spec.submission_mode
    spec = msgspec.structs.replace(job.spec, ray_cluster_spec=cluster.spec, submission_mode=mode)
    return msgspec.structs.replace(job, spec=spec)


def plan_job_gang(
    job: RayJob,
    state: str,
    cluster: ClusterFacts | None,
    scheduler: Scheduler,
    found: Mapping[ChildKey, JSON],
    defaults: SubmitterDefaults,
) -> list[ChildAction]:
    """What to do about the scheduler's objects of a job that is to be in this state."""
    if state in STARTED:
        return plan_gang(scheduler, job_gang(as_begun(job, cluster), defaults), found, is_at_rest=False)
    if state not in AT_REST or job.spec.cluster_selector:
        return []
    left = cluster.spec if cluster is not None and not cluster.is_going else None
    return plan_gang(scheduler, Gang(Owner.of(job), left), found, is_at_rest=True)


def _submitter(job: RayJob, defaults: SubmitterDefaults) -> JSON:
    """The template as far as schedulers look at it."""
    template = job.spec.submitter_pod_template or {}
    if containers(template):
        return template
    container = default_container(job, future_cluster(job), defaults)
    return {**template, "spec": {**pod_spec(template), "containers": [container]}}


def _with_submitter(job: RayJob, spec: RayClusterSpec, defaults: SubmitterDefaults) -> RayClusterSpec:
    """The spec with the submitter beside its head, unless the user put one there."""
    template = spec.head_group_spec.template
    if any(container.get("name") == JOB_SUBMITTER for container in containers(template)):
        return spec
    beside = [*containers(template), default_container(job, future_cluster(job), defaults)]
    pod = {**template, "spec": {**pod_spec(template), "containers": beside}}
    return msgspec.structs.replace(spec, head_group_spec=msgspec.structs.replace(spec.head_group_spec, template=pod))
