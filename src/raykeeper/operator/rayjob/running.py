"""What may happen to a job that was given to Ray, or is about to be. Pure.

Ray's own word is looked at first: no deadline, suspension or submitter turns a job that succeeded into another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from raykeeper.api.rayjob import RayJobInfo, RayJobStatus
from raykeeper.api.times import parse_time, to_time
from raykeeper.operator.rayjob.deadlines import DEADLINE_FIELDS, missed_deadline
from raykeeper.operator.rayjob.facts import (
    Action,
    DeleteSubmitter,
    JobInfo,
    KeepHeadService,
    NoSuchJob,
    Silence,
    Step,
    StopJob,
    SubmitJob,
    SubmitterFacts,
)
from raykeeper.operator.rayjob.retries import clip_message, keeps_cluster
from raykeeper.operator.rayjob.rules import FAILURE, View, rule
from raykeeper.operator.rayjob.starting import id_is_taken
from raykeeper.operator.rayjob.states import (
    COMPLETE,
    FAILED,
    JOB_ENDS,
    JOB_FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    SUSPENDING,
    WAITING,
    Reason,
    SubmissionMode,
)
from raykeeper.operator.shared.troubles import Trouble

LOOK_AGAIN: Final = timedelta(seconds=30)
"""While a job runs, beside every answer of Ray's that is new."""
LOOK_SOON: Final = timedelta(seconds=5)
"""While a submitter is waited for: not every change of the one beside a head changes what its RayCluster says."""
CLOCK_DIFFERENCE: Final = timedelta(seconds=30)
"""So much may the clocks of a head and of the operator differ."""
PRINTING: Final = "the job ended, and its submitter still prints what the job wrote"
SUBMITTER_GRACE: Final = timedelta(seconds=30)
"""So long may Ray take to know a job whose submitter has ended well."""


def submitter_of(view: View) -> SubmitterFacts | None:
    """What gives the job to Ray, if it is there."""
    if view.mode == SubmissionMode.SIDECAR:
        return view.facts.cluster.sidecar if view.facts.cluster else None
    return view.facts.submitter if view.mode == SubmissionMode.K8S_JOB else None


def _told(view: View) -> RayJobStatus:
    """The status with what Ray says now. An end that Ray once told is not taken back."""
    ray, status = view.facts.ray, view.status
    if isinstance(ray, JobInfo) and (status.job_status not in JOB_ENDS or ray.status in JOB_ENDS):
        return msgspec.structs.replace(
            status,
            job_status=ray.status,
            message=clip_message(ray.message),
            reason="",
            ray_job_info=RayJobInfo(_time(ray.start_time), _time(ray.end_time)),
        )
    word_counts_at = _word_counts_at(view)
    if word_counts_at is not None and view.now >= word_counts_at and status.job_status not in JOB_ENDS:
        message = "Ray told the submitter, and can no longer be asked"
        return msgspec.structs.replace(status, job_status=_word(view), message=message, reason="")
    return status


def _word(view: View) -> str:
    """How the job ended, where Ray told its submitter."""
    submitter = submitter_of(view)
    return submitter.ray_status if submitter and submitter.ray_status in JOB_ENDS else ""


def _word_counts_at(view: View) -> datetime | None:
    """When the submitter's word counts because Ray cannot be asked; None as long as Ray can, or there is no word."""
    submitter = submitter_of(view)
    if submitter is None or not _word(view):
        return None
    if _lost(view) is not None:
        return view.now
    return (submitter.finished_at or view.now) + SUBMITTER_GRACE if isinstance(view.facts.ray, Silence) else None


def _time(moment: datetime | None) -> str | None:
    return to_time(moment) if moment else None


@rule(RUNNING, to=FAILURE)
def finds_an_older_job(view: View) -> Step | None:
    """Ray's job of that id, on the cluster that `clusterSelector` names, was started before this RayJob was"""
    ray, began = view.facts.ray, parse_time(view.status.start_time)
    if not isinstance(ray, JobInfo) or not view.uses_others_cluster or view.mode == SubmissionMode.INTERACTIVE:
        return None
    is_known = bool(view.status.job_status)  # it was taken for ours before, so it is
    if is_known or began is None or ray.start_time is None or ray.start_time >= began - CLOCK_DIFFERENCE:
        return None
    message = id_is_taken(view, f"Ray has a job of that id since {to_time(ray.start_time)}")
    return view.fail(Reason.SUBMISSION_FAILED, message, *_silenced(view))


@rule(RUNNING, to=f"{COMPLETE}, or {FAILURE}")
def ended(view: View) -> Step | None:
    """Ray says that the job ended, and its submitter has ended too, or is not waited for any longer"""
    told = _told(view)
    if told.job_status not in JOB_ENDS or _waits_for_logs(view, told):
        return None
    view = View(msgspec.structs.replace(view.job, status=told), view.facts, view.now)
    if told.job_status == JOB_FAILED:
        return view.fail(Reason.APP_FAILED, told.message or "Ray says that the job failed", *_silenced(view))
    return _completed(view)


def _completed(view: View) -> Step:
    status = view.status
    succeeded = status.succeeded + (status.job_status == SUCCEEDED)
    end = to_time(view.now)
    return Step(
        msgspec.structs.replace(status, job_deployment_status=COMPLETE, reason="", succeeded=succeeded, end_time=end),
        (),
        view.now,
    )


def _waits_for_logs(view: View, told: RayJobStatus) -> bool:
    """Whether the submitter still prints the job's output, and nothing speaks against letting it."""
    submitter = submitter_of(view)
    if submitter is None or submitter.has_finished or view.job.spec.suspend or missed_deadline(view.job, view.now):
        return False
    end = parse_time(told.ray_job_info.end_time)
    grace = timedelta(seconds=view.facts.settings.transition_grace_seconds)
    return end is None or view.now < end + grace


@rule(RUNNING, to=RUNNING)
def prints_its_output(view: View) -> Step | None:
    """Ray says that the job ended, and its submitter still prints what the job wrote"""
    told = _told(view)
    if told.job_status not in JOB_ENDS:
        return None
    return view.step(status=told, look_at=view.now + LOOK_SOON, trouble=Trouble("WaitingForSubmitter", PRINTING))


@rule(RUNNING, to=SUSPENDING)
def is_suspended(view: View) -> Step | None:
    """`suspend` is set"""
    return view.go(SUSPENDING) if view.job.spec.suspend else None


@rule(RUNNING, to=FAILED)
def misses_the_deadline(view: View) -> Step | None:
    """`activeDeadlineSeconds` have passed since `startTime`; Ray is asked to stop the job"""
    reason = missed_deadline(view.job, view.now)
    if reason is None:
        return None
    stop: tuple[Action, ...] = (StopJob(view.status.job_id),) if view.facts.cluster else ()
    told = _told(view)
    message = f"the job ran longer than {DEADLINE_FIELDS[reason]}"
    actions = dict.fromkeys((*stop, *_silenced(view)))
    return view.fail(reason, message, *actions, job_status=told.job_status)


@rule(RUNNING, to=FAILURE)
def loses_its_head(view: View) -> Step | None:
    """the head that had the job is gone or was started anew, and kept nothing; or Ray forgot a job it knew"""
    cause = _lost(view)
    if cause is None:
        return None
    return view.fail(Reason.HEAD_LOST, cause, *_silenced(view))


def _lost(view: View) -> str | None:
    cluster, status = view.facts.cluster, view.status
    if cluster is None:
        return f"RayCluster {status.ray_cluster_name} is gone"
    if not cluster.keeps_jobs:
        if not cluster.head_instance:
            return f"the head pod of RayCluster {cluster.name} is gone"
        if status.head_instance and cluster.head_instance != status.head_instance:
            return f"the head of RayCluster {cluster.name} was started anew"
    if isinstance(view.facts.ray, NoSuchJob) and status.job_status:
        return f"the head of RayCluster {cluster.name} no longer knows job {status.job_id}"
    return None


def _silenced(view: View) -> tuple[Action, ...]:
    """What must not outlive the attempt: a submitter could give the job to Ray a second time, and on a cluster that is
    used again the job would run beside that of the next attempt."""
    submitter, cluster = submitter_of(view), view.facts.cluster
    is_running = view.mode == SubmissionMode.K8S_JOB and submitter is not None and not submitter.has_finished
    may_run = keeps_cluster(view.job) and cluster is not None and view.status.job_status not in JOB_ENDS
    return (*([DeleteSubmitter()] if is_running else []), *([StopJob(view.status.job_id)] if may_run else []))


@rule(RUNNING, to=FAILURE)
def was_never_submitted(view: View) -> Step | None:
    """Ray does not know the job, and its submitter failed, is gone, or ended 30 s ago"""
    if not isinstance(view.facts.ray, NoSuchJob) or not view.has_submitter:
        return None
    submitter = submitter_of(view)
    if submitter is None:
        return view.fail(Reason.SUBMISSION_FAILED, "the submitter was deleted before it gave the job to Ray")
    if submitter.has_failed:
        return view.fail(Reason.SUBMISSION_FAILED, submitter.message or "the submitter failed")
    ended_at = submitter.finished_at or view.now
    if submitter.has_finished and view.now >= ended_at + SUBMITTER_GRACE:
        return view.fail(Reason.APP_FAILED, "the submitter ended, and Ray does not know the job")
    return None


@rule(RUNNING, to=FAILURE)
def cannot_start_its_submitter(view: View) -> Step | None:
    """the submitter can never start, and the annotation `raykeeper.io/fail-fast` is `true`"""
    submitter = submitter_of(view)
    trouble = submitter.trouble if submitter else None
    if trouble is None or not trouble.is_hopeless or not view.fails_fast:
        return None
    return view.fail(Reason.CANNOT_START, f"{trouble.reason}: {trouble.message}", *_silenced(view))


@rule(RUNNING, to=FAILED)
def cannot_be_asked_about(view: View) -> Step | None:
    """Ray gave no answer at all for RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS (300)"""
    since = parse_time(view.status.job_status_check_failure_start_time)
    timeout = timedelta(seconds=view.facts.settings.status_check_timeout_seconds)
    if not isinstance(view.facts.ray, Silence) or since is None or view.now < since + timeout:
        return None
    message = f"Ray could not be asked about the job for {timeout.total_seconds():.0f} s: {view.facts.ray.cause}"
    return view.fail(Reason.STATUS_CHECK_TIMEOUT, message, *_silenced(view))


@rule(RUNNING, to=RUNNING)
def gets_no_answer(view: View) -> Step | None:
    """Ray does not answer: since when is written down"""
    ray = view.facts.ray
    if not isinstance(ray, Silence):
        return None
    since = parse_time(view.status.job_status_check_failure_start_time) or view.now
    status = msgspec.structs.replace(view.status, job_status_check_failure_start_time=to_time(since))
    due = since + timedelta(seconds=view.facts.settings.status_check_timeout_seconds)
    trouble = Trouble("WaitingForDashboard", ray.cause)
    look_at = min(due, _word_counts_at(view) or due)
    return view.step(KeepHeadService(), status=status, look_at=look_at, trouble=trouble)


@rule(RUNNING, to=RUNNING)
def is_given_to_ray(view: View) -> Step | None:
    """Ray does not know the job, in HTTPMode: it is submitted"""
    if view.mode != SubmissionMode.HTTP or not isinstance(view.facts.ray, NoSuchJob):
        return None
    trouble = Trouble("Submitting", f"job {view.status.job_id} is given to Ray")
    # Written down once Ray took it: a head that does not know the job then has lost it, and gets it no second time.
    given = msgspec.structs.replace(view.status, job_status=PENDING)
    return view.step(KeepHeadService(), SubmitJob(view.status.job_id), status=given, trouble=trouble)


@rule(RUNNING, to=WAITING)
def is_given_another_id(view: View) -> Step | None:
    """Ray does not know the job, in InteractiveMode, and the user has changed `jobId`"""
    is_unknown = isinstance(view.facts.ray, NoSuchJob) and not view.status.job_status
    if view.mode != SubmissionMode.INTERACTIVE or not is_unknown or view.job.spec.job_id == view.status.job_id:
        return None
    return view.go(WAITING, job_id="", head_instance="")


@rule(RUNNING, to=RUNNING)
def goes_on(view: View) -> Step | None:
    """otherwise: what Ray says about the job is written down"""
    submitter, told = submitter_of(view), _told(view)
    trouble = None
    if not told.job_status:
        trouble = _waits_for_first_word(view, submitter)
    elif not told.head_instance and view.facts.cluster:
        told = msgspec.structs.replace(told, head_instance=view.facts.cluster.head_instance)
    moments = [view.now + (LOOK_SOON if submitter and submitter.trouble else LOOK_AGAIN)]
    if submitter and submitter.finished_at and not told.job_status:
        moments.append(submitter.finished_at + SUBMITTER_GRACE)
    return view.step(KeepHeadService(), status=told, look_at=min(moments), trouble=trouble)


def _waits_for_first_word(view: View, submitter: SubmitterFacts | None) -> Trouble:
    """Why Ray has said nothing about the job so far."""
    if submitter is not None:
        waiting = Trouble("WaitingForSubmitter", "the submitter has not given the job to Ray yet")
        return submitter.trouble or waiting
    if isinstance(view.facts.ray, NoSuchJob):
        job_id = view.status.job_id
        return Trouble("JobNotFound", f"Ray does not know job {job_id}: submit it under that id, or correct spec.jobId")
    return Trouble("WaitingForDashboard", "Ray has not been asked about the job yet")
