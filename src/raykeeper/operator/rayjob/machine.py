"""The life of a RayJob, as rules in their order. Pure: status, facts and time in, status and actions out.

Four promises hold in every mode:
an attempt is given to Ray at most once; what Ray says about a job counts more than how its submitter ended;
SUCCEEDED is never overwritten; a lost head fails the attempt, and `backoffLimit` decides about another.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob import ending, running, starting
from raykeeper.operator.rayjob.facts import (
    Action,
    Facts,
    JobInfo,
    NoSuchJob,
    Silence,
    Step,
    StopJob,
)
from raykeeper.operator.rayjob.rules import Rule, View
from raykeeper.operator.rayjob.states import (
    INITIALIZING,
    JOB_ENDS,
    RUNNING,
    WAITING,
)
from raykeeper.operator.shared.troubles import Trouble

TABLE: Final[tuple[Rule, ...]] = (
    starting.is_valid_again,
    starting.is_suspended_at_once,
    starting.begins,
    starting.is_suspended_before_it_runs,
    starting.misses_a_deadline_before_it_runs,
    starting.cannot_start,
    starting.loses_the_head_with_its_submitter,
    starting.runs_before_all_workers,
    starting.waits_for_its_cluster,
    starting.waits_for_a_job_id,
    starting.has_the_id_of_another,
    starting.runs,
    starting.loses_the_cluster_it_waits_with,
    starting.was_given_a_job_id,
    starting.goes_on_waiting,
    running.finds_an_older_job,
    running.ended,
    running.prints_its_output,
    running.is_suspended,
    running.misses_the_deadline,
    running.loses_its_head,
    running.was_never_submitted,
    running.cannot_start_its_submitter,
    running.cannot_be_asked_about,
    running.gets_no_answer,
    running.is_given_to_ray,
    running.is_given_another_id,
    running.goes_on,
    ending.is_suspended_between_attempts,
    ending.tears_down,
    ending.is_suspended,
    ending.tries_again,
    ending.resumes,
    ending.stays_suspended,
    ending.cleans_up,
)
"""Of the rows for a state, the first that applies is taken."""


def step(job: RayJob, facts: Facts, now: datetime) -> Step:
    """What to do about a RayJob now, and what to say about it."""
    view = View(_with_answer(_with_cluster_status(job, facts), facts), facts, now)
    state = job.status.job_deployment_status
    for row in TABLE:
        if state in row.sources and (taken := row.decide(view)) is not None:
            return taken
    return Step(
        job.status, trouble=Trouble("UnknownState", f"status.jobDeploymentStatus is {state}, which nobody knows")
    )


def _with_cluster_status(job: RayJob, facts: Facts) -> RayJob:
    """The job with the present status of its cluster, which Kueue reads there."""
    if facts.cluster is None or job.status.job_deployment_status not in (INITIALIZING, WAITING, RUNNING):
        return job
    known, found = job.status.ray_cluster_status, facts.cluster.status
    if _without_times(known) == _without_times(found):
        return job
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, ray_cluster_status=found))


def _with_answer(job: RayJob, facts: Facts) -> RayJob:
    """The job as it is once Ray answers: no silence lasts any longer, though Ray may not know the job."""
    if not isinstance(facts.ray, JobInfo | NoSuchJob) or job.status.job_status_check_failure_start_time is None:
        return job
    heard = msgspec.structs.replace(job.status, job_status_check_failure_start_time=None)
    return msgspec.structs.replace(job, status=heard)


def _without_times(status: RayClusterStatus) -> RayClusterStatus:
    return msgspec.structs.replace(status, last_update_time=None, state_transition_times={})


def last_actions(job: RayJob, facts: Facts) -> tuple[Action, ...]:
    """What is done before a RayJob that is being deleted may go: its Ray job is stopped, if Ray can be asked."""
    status = job.status
    is_over = not status.job_id or status.job_status in JOB_ENDS or status.job_deployment_status != RUNNING
    cluster = facts.cluster
    if is_over or cluster is None or not cluster.head_instance:
        return ()
    if isinstance(facts.ray, Silence) and cluster.is_owned:
        return ()  # it goes with its cluster, and nobody waits for a dead head
    return (StopJob(status.job_id),)
