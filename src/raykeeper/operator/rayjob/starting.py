"""What may happen to a RayJob until its job is given to Ray. Pure."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Final

import msgspec

from raykeeper.api import labels
from raykeeper.api.rayjob import RayJobStatus
from raykeeper.api.times import to_time
from raykeeper.operator.rayjob.deadlines import DEADLINE_FIELDS, missed_deadline
from raykeeper.operator.rayjob.deletion_rules import forgotten_ends
from raykeeper.operator.rayjob.facts import (
    Action,
    AddFinalizer,
    ClusterFacts,
    CreateCluster,
    CreateSubmitter,
    Step,
)
from raykeeper.operator.rayjob.retries import keeps_cluster
from raykeeper.operator.rayjob.rules import FAILURE, View, rule
from raykeeper.operator.rayjob.states import (
    INITIALIZING,
    NEW,
    RUNNING,
    SUSPENDED,
    SUSPENDING,
    VALIDATION_FAILED,
    WAITING,
    Reason,
    SubmissionMode,
)
from raykeeper.operator.shared.troubles import Trouble

LOOK_AGAIN: Final = timedelta(seconds=5)
"""Not every trouble of a pod changes what its RayCluster says: an init container that fails does not."""


@rule(VALIDATION_FAILED, to=f"New, or {INITIALIZING} if it had a cluster")
def is_valid_again(view: View) -> Step | None:
    """the spec is valid again"""
    state = INITIALIZING if view.status.ray_cluster_name else NEW
    return view.go(state, reason="", message="")


@rule(NEW, to=SUSPENDED)
def is_suspended_at_once(view: View) -> Step | None:
    """`suspend` is set"""
    return view.go(SUSPENDED) if view.job.spec.suspend else None


@rule(NEW, to=INITIALIZING)
def begins(view: View) -> Step | None:
    """always: names are made up and written down before anything is created"""
    spec, name = view.job.spec, view.job.metadata.name
    generated = f"{name}-{view.facts.random_end}"
    cluster = spec.cluster_selector.get(labels.CLUSTER) or view.status.ray_cluster_name or generated
    begun = view.go(
        INITIALIZING,
        AddFinalizer(),
        job_id=_job_id(view, generated),
        ray_cluster_name=cluster,
        start_time=to_time(view.now),
        end_time=None,
    )
    return dataclasses.replace(begun, warnings=tuple(forgotten_ends(view.job)))


def _job_id(view: View, generated: str) -> str:
    spec = view.job.spec
    if spec.submission_mode == SubmissionMode.INTERACTIVE:
        return ""
    if spec.job_id and keeps_cluster(view.job) and view.status.failed:
        # Ray takes each id once, so the next attempt on the same cluster needs another.
        return f"{spec.job_id}-{view.status.failed}"
    return spec.job_id or generated


@rule(INITIALIZING, WAITING, to=SUSPENDING)
def is_suspended_before_it_runs(view: View) -> Step | None:
    """`suspend` is set"""
    return view.go(SUSPENDING) if view.job.spec.suspend else None


@rule(INITIALIZING, WAITING, to=FAILURE)
def misses_a_deadline_before_it_runs(view: View) -> Step | None:
    """`activeDeadlineSeconds` or `preRunningDeadlineSeconds` have passed since `startTime`"""
    reason = missed_deadline(view.job, view.now)
    if reason is None:
        return None
    trouble = _cluster_trouble(view)
    return view.fail(reason, f"{DEADLINE_FIELDS[reason]} passed before the job ran: {trouble.message}")


@rule(INITIALIZING, to=FAILURE)
def cannot_start(view: View) -> Step | None:
    """a container can never start, and the annotation `raykeeper.io/fail-fast` is `true`"""
    cluster = view.facts.cluster
    trouble = cluster.trouble if cluster else None
    if trouble is None or not trouble.is_hopeless or not view.fails_fast:
        return None
    return view.fail(Reason.CANNOT_START, f"{trouble.reason}: {trouble.message}")


@rule(INITIALIZING, to=FAILURE)
def loses_the_head_with_its_submitter(view: View) -> Step | None:
    """the head pod is gone, in SidecarMode: its submitter may have given the job to Ray"""
    cluster, known = view.facts.cluster, view.status.head_instance
    is_lost = bool(known) and (cluster is None or cluster.head_instance != known)
    if view.mode != SubmissionMode.SIDECAR or not (is_lost or (cluster and cluster.has_lost_head)):
        return None
    return view.fail(Reason.HEAD_LOST, "the head pod was lost together with the submitter beside it")


@rule(INITIALIZING, to=RUNNING)
def runs_before_all_workers(view: View) -> Step | None:
    """the submitter beside the head has ended, in SidecarMode, though the cluster is not ready"""
    cluster = view.facts.cluster
    if cluster is None or cluster.sidecar is None or not cluster.sidecar.has_finished or not cluster.dashboard_url:
        return None
    return view.go(RUNNING, dashboard_url=cluster.dashboard_url, head_instance=cluster.head_instance)


@rule(INITIALIZING, to=INITIALIZING)
def waits_for_its_cluster(view: View) -> Step | None:
    """its RayCluster is missing (it is created), being deleted, or not ready, or its head is not"""
    cluster = view.facts.cluster
    if cluster is None and not view.uses_others_cluster and view.job.spec.ray_cluster_spec is not None:
        return view.stay(CreateCluster(view.status.ray_cluster_name), trouble=_cluster_trouble(view))
    if cluster is None or not _is_usable(view, cluster):
        look_at = view.now + LOOK_AGAIN
        return view.step(trouble=_cluster_trouble(view), status=_with_sidecars_head(view), look_at=look_at)
    return None


def _is_usable(view: View, cluster: ClusterFacts) -> bool:
    """Whether a job can be given to it now. A submitter beside the head may be what makes that unready."""
    is_up = cluster.status.state == "ready" and not cluster.is_going and bool(cluster.dashboard_url)
    return is_up and (cluster.is_head_ready or view.mode == SubmissionMode.SIDECAR)


def _with_sidecars_head(view: View) -> RayJobStatus:
    """In SidecarMode the job belongs to a head as soon as there is one."""
    if view.mode != SubmissionMode.SIDECAR or view.facts.cluster is None or view.status.head_instance:
        return view.status
    return msgspec.structs.replace(view.status, head_instance=view.facts.cluster.head_instance)


def _cluster_trouble(view: View) -> Trouble:
    name, cluster = view.status.ray_cluster_name, view.facts.cluster
    if cluster is None and view.uses_others_cluster:
        return Trouble("RayClusterNotFound", view.facts.cluster_missing or f"there is no RayCluster {name}")
    if cluster is None and view.job.spec.ray_cluster_spec is None:
        cure = "write spec.rayClusterSpec, from which it is made anew"
        return Trouble("RayClusterNotFound", f"RayCluster {name} is gone: {cure}")
    if cluster is None:
        return Trouble("CreatingRayCluster", f"RayCluster {name} is being created")
    if cluster.is_going:
        return Trouble("RayClusterDeleted", f"RayCluster {name} is being deleted")
    if cluster.spec.suspend:
        return Trouble("RayClusterSuspended", f"RayCluster {name} is suspended")
    if cluster.status.state == "ready" and not cluster.dashboard_url:
        cure = "call the port of the head container that leads there so"
        return Trouble("WaitingForDashboard", f"the head service of {name} has no port named dashboard: {cure}")
    what = f"RayCluster {name}" if cluster.is_head_ready else f"the head of RayCluster {name}"
    return cluster.trouble or Trouble("WaitingForRayCluster", f"{what} is not ready")


@rule(INITIALIZING, to=WAITING)
def waits_for_a_job_id(view: View) -> Step | None:
    """the cluster is ready, in InteractiveMode"""
    if view.mode != SubmissionMode.INTERACTIVE or view.facts.cluster is None:
        return None
    return view.go(WAITING, dashboard_url=view.facts.cluster.dashboard_url)


@rule(INITIALIZING, to=FAILURE)
def has_the_id_of_another(view: View) -> Step | None:
    """an older RayJob has a job of the same id on the cluster that `clusterSelector` names"""
    if not view.facts.namesake:
        return None
    return view.fail(Reason.SUBMISSION_FAILED, id_is_taken(view, f"RayJob {view.facts.namesake} has it"))


def id_is_taken(view: View, by_whom: str) -> str:
    """Ray takes each id once, and would tell this RayJob of another's job."""
    return f"job id {view.status.job_id} is taken on RayCluster {view.status.ray_cluster_name}: {by_whom}; " + (
        "choose another spec.jobId, or leave it out"
    )


@rule(INITIALIZING, to=RUNNING)
def runs(view: View) -> Step | None:
    """the cluster is ready; in K8sJobMode the submitter is created first"""
    cluster = view.facts.cluster
    if cluster is None:
        return None
    made: tuple[Action, ...] = (CreateSubmitter(),) if view.mode == SubmissionMode.K8S_JOB else ()
    return view.go(RUNNING, *made, dashboard_url=cluster.dashboard_url, head_instance=cluster.head_instance)


@rule(WAITING, to=INITIALIZING)
def loses_the_cluster_it_waits_with(view: View) -> Step | None:
    """the cluster or its head is gone: it is waited for anew"""
    cluster = view.facts.cluster
    if cluster is not None and not cluster.is_going and cluster.head_instance:
        return None
    return view.go(INITIALIZING, dashboard_url="", head_instance="")


@rule(WAITING, to=RUNNING)
def was_given_a_job_id(view: View) -> Step | None:
    """the user has submitted a job and set `jobId`"""
    job_id = view.job.spec.job_id
    head = view.facts.cluster.head_instance if view.facts.cluster else ""
    return view.go(RUNNING, job_id=job_id, head_instance=head) if job_id else None


@rule(WAITING, to=WAITING)
def goes_on_waiting(view: View) -> Step | None:
    """otherwise"""
    address = f"http://{view.status.dashboard_url}"
    return view.stay(trouble=Trouble("WaitingForJobId", f"submit a job to {address} and set spec.jobId to its id"))
