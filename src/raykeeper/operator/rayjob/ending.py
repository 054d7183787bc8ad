"""What may happen to a RayJob between two attempts, while it is suspended, and after its end. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayjob import RayJobInfo, RayJobStatus
from raykeeper.api.times import to_time
from raykeeper.operator.rayjob.deletion_rules import plan_cleanup
from raykeeper.operator.rayjob.facts import (
    Action,
    ClusterFacts,
    DeleteCluster,
    DeleteSubmitter,
    Step,
)
from raykeeper.operator.rayjob.retries import keeps_cluster, retry_at
from raykeeper.operator.rayjob.rules import View, rule
from raykeeper.operator.rayjob.states import (
    COMPLETE,
    FAILED,
    NEW,
    RETRYING,
    SUSPENDED,
    SUSPENDING,
)
from raykeeper.operator.shared.troubles import Trouble

TEAR_DOWN: Final = timedelta(minutes=5)
"""As long as the pods of a RayCluster may take to go before they are replaced."""


@rule(RETRYING, to=SUSPENDING)
def is_suspended_between_attempts(view: View) -> Step | None:
    """`suspend` is set"""
    return view.go(SUSPENDING) if view.job.spec.suspend else None


@rule(SUSPENDING, RETRYING, to="the same")
def tears_down(view: View) -> Step | None:
    """the submitter or the cluster is still there: both are deleted, but not a cluster that is used again. A suspension
    waits for their pods, too, for five minutes"""
    cluster, state = view.facts.cluster, view.status.job_deployment_status
    actions: list[Action] = []
    is_kept = state == RETRYING and keeps_cluster(view.job)
    is_there = cluster is not None and cluster.is_owned and not is_kept and not _is_overdue(view, cluster)
    # Quota goes to others once a job is suspended, so its pods must be gone by then. Redis is cleaned by a Job that
    # such a deletion would take away; there the cluster's own finalizer waits for the pods.
    waits_for_pods = state == SUSPENDING
    if cluster is not None and is_there and not cluster.is_going:
        actions.append(DeleteCluster(cluster.name, cluster.uid, waits_for_pods and not cluster.keeps_jobs))
    if view.facts.submitter is not None:
        actions.append(DeleteSubmitter(waits_for_pods))
    if not actions and not is_there:
        return None
    look_at = cluster.going_since + TEAR_DOWN if cluster and cluster.going_since else None
    return view.step(*actions, look_at=look_at, trouble=Trouble(state, "what the last attempt made is being deleted"))


def _is_overdue(view: View, cluster: ClusterFacts) -> bool:
    """Whether pods that do not go have held up a suspension for so long that nobody waits for them any more. Another
    attempt waits for ever: what runs there may be the job."""
    is_suspending = view.status.job_deployment_status == SUSPENDING
    return is_suspending and cluster.going_since is not None and view.now >= cluster.going_since + TEAR_DOWN


@rule(SUSPENDING, to=SUSPENDED)
def is_suspended(view: View) -> Step | None:
    """both are gone"""
    return Step(_cleared(view.status, SUSPENDED))


@rule(RETRYING, to="New")
def tries_again(view: View) -> Step | None:
    """both are gone, and the pause after the failure is over: 10 s, then twice as long each time, up to 6 minutes"""
    due = retry_at(view.status)
    if due is not None and view.now < due:
        last = view.status.failed_attempts[-1]
        return view.step(look_at=due, trouble=Trouble("BackOff", f"next attempt at {to_time(due)}: {last.message}"))
    cleared = _cleared(view.status, NEW)
    if keeps_cluster(view.job) and view.facts.cluster is not None:
        cleared = msgspec.structs.replace(cleared, ray_cluster_name=view.status.ray_cluster_name)
    return Step(cleared, look_at=view.now)


@rule(SUSPENDED, to="New")
def resumes(view: View) -> Step | None:
    """`suspend` is no longer set"""
    return None if view.job.spec.suspend else view.go(NEW)


@rule(SUSPENDED, to=SUSPENDED)
def stays_suspended(view: View) -> Step | None:
    """otherwise"""
    return Step(view.status)


@rule(COMPLETE, FAILED, to="the same")
def cleans_up(view: View) -> Step | None:
    """always: what `deletionStrategy` or `shutdownAfterJobFinishes` say is deleted when it is due"""
    return plan_cleanup(view.job, view.facts, view.now)


def _cleared(status: RayJobStatus, state: str) -> RayJobStatus:
    """The status without what belonged to the last attempt."""
    return msgspec.structs.replace(
        status,
        job_deployment_status=state,
        job_status="",
        job_id="",
        ray_cluster_name="",
        dashboard_url="",
        reason="",
        message="",
        head_instance="",
        ray_job_info=RayJobInfo(),
        ray_cluster_status=RayClusterStatus(),
        job_status_check_failure_start_time=None,
    )
