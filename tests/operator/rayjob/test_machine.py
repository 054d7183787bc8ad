"""Every row of the table of transitions, and the promises that hold in all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob import facts as f
from raykeeper.operator.rayjob.facts import (
    ClusterFacts,
    JobInfo,
    NoSuchJob,
    RayAnswer,
    Silence,
    Step,
    SubmitterFacts,
)
from raykeeper.operator.rayjob.machine import TABLE, last_actions, step
from raykeeper.operator.rayjob.retries import MOST_ATTEMPTS_KEPT
from raykeeper.operator.shared.troubles import Trouble
from support.rayjob_facts import (
    DONE_SUBMITTER,
    FAILED_SUBMITTER,
    HEAD,
    NOW,
    RUNNING_SUBMITTER,
    a_cluster,
    a_job,
    ago,
    facts,
)

SUCCESS = JobInfo("SUCCEEDED", "done", NOW - timedelta(minutes=1), NOW - timedelta(seconds=3))
FAILURE = JobInfo("FAILED", "Traceback: ValueError", NOW - timedelta(minutes=1), NOW - timedelta(seconds=3))
RUNS = JobInfo("RUNNING", "working")
MODES = ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"]
RESTING = msgspec.structs.replace(a_cluster().spec, suspend=True)
SUSPENDED: JSON = {"suspend": True, "shutdownAfterJobFinishes": True}


def state(taken: Step) -> tuple[str, str, str]:
    return taken.status.job_deployment_status, taken.status.job_status, taken.status.reason


def running(status: JSON | None = None, **spec: Any) -> RayJob:
    return a_job("Running", status, **spec)


def test_names_are_written_down_before_anything_is_made() -> None:
    taken = step(a_job(), facts(cluster=None), NOW)
    assert taken.actions == (f.AddFinalizer(),)
    assert state(taken) == ("Initializing", "", "")
    assert (taken.status.job_id, taken.status.ray_cluster_name) == ("counter-zzzzz", "counter-zzzzz")
    assert taken.status.start_time == "2026-11-16T12:00:00Z"


def test_the_users_own_id_and_cluster_are_taken() -> None:
    job = a_job(jobId="mine", clusterSelector={"ray.io/cluster": "shared"}, rayClusterSpec=None)
    taken = step(job, facts(cluster=None), NOW)
    assert (taken.status.job_id, taken.status.ray_cluster_name) == ("mine", "shared")


def test_a_new_job_that_is_suspended_makes_nothing() -> None:
    taken = step(a_job(**SUSPENDED), facts(cluster=None), NOW)
    assert (taken.actions, state(taken)) == ((), ("Suspended", "", ""))


def test_an_initializing_job_makes_its_cluster_once() -> None:
    assert step(a_job("Initializing"), facts(cluster=None), NOW).actions == (f.CreateCluster("counter-fghij"),)
    assert step(a_job("Initializing"), facts(cluster=a_cluster("")), NOW).actions == ()


def test_a_job_says_what_it_waits_for() -> None:
    trouble = Trouble("ErrImagePull", "pod x: container ray: no such image")
    taken = step(a_job("Initializing"), facts(cluster=a_cluster("", trouble=trouble)), NOW)
    assert (taken.trouble, state(taken)) == (trouble, ("Initializing", "", ""))


@pytest.mark.parametrize(
    ("cluster", "reason", "word"),
    [
        (a_cluster(dashboard_url=""), "WaitingForDashboard", "port named dashboard"),
        (a_cluster("suspended", spec=RESTING), "RayClusterSuspended", "is suspended"),
        (a_cluster(""), "WaitingForRayCluster", "RayCluster counter-fghij is not ready"),
        (a_cluster(is_head_ready=False), "WaitingForRayCluster", "the head of RayCluster counter-fghij is not ready"),
    ],
)
def test_a_job_says_why_its_cluster_cannot_be_used(cluster: ClusterFacts, reason: str, word: str) -> None:
    taken = step(a_job("Initializing"), facts(cluster=cluster), NOW)
    assert taken.trouble is not None
    assert (taken.trouble.reason, word in taken.trouble.message) == (reason, True)


def test_a_job_for_a_cluster_that_is_missing_waits_and_makes_none() -> None:
    taken = step(a_job("Initializing", clusterSelector={"ray.io/cluster": "shared"}), facts(cluster=None), NOW)
    assert taken.actions == ()
    assert taken.trouble is not None
    assert taken.trouble.reason == "RayClusterNotFound"


@pytest.mark.parametrize("before", ["Initializing", "Waiting"])
@pytest.mark.parametrize("field", ["activeDeadlineSeconds", "preRunningDeadlineSeconds"])
def test_deadlines_hold_before_the_job_runs(before: str, field: str) -> None:
    known = facts(cluster=a_cluster(""))
    passed: JSON = {field: 600, "submissionMode": "InteractiveMode"}
    taken = step(a_job(before, **passed), known, NOW)
    assert taken.status.job_deployment_status == "Failed"
    assert field in taken.status.message
    early = step(a_job(before, **(passed | {field: 601})), known, NOW)
    assert early.status.job_deployment_status == before
    assert early.look_at == NOW + timedelta(seconds=1)


@pytest.mark.parametrize("before", ["Initializing", "Waiting", "Running", "Retrying"])
def test_suspend_holds_wherever_a_job_is(before: str) -> None:
    taken = step(a_job(before, **SUSPENDED), facts(submitter=RUNNING_SUBMITTER), NOW)
    assert taken.status.job_deployment_status == "Suspending"


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_what_can_never_start_fails_at_once_where_the_user_asked_for_it(is_asked_for: bool) -> None:
    hopeless = Trouble("InvalidImageName", "pod x: container ray: cannot parse", is_hopeless=True)
    annotations = {"raykeeper.io/fail-fast": "true"} if is_asked_for else {}
    before = step(a_job("Initializing", annotations=annotations), facts(cluster=a_cluster("", trouble=hopeless)), NOW)
    assert state(before) == (("Failed", "", "CannotStart") if is_asked_for else ("Initializing", "", ""))
    submitter = SubmitterFacts(trouble=hopeless)
    after = step(a_job("Running", annotations=annotations), facts(submitter=submitter), NOW)
    assert state(after) == (("Failed", "", "CannotStart") if is_asked_for else ("Running", "", ""))


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
def test_a_ready_cluster_gets_the_job(mode: str) -> None:
    taken = step(a_job("Initializing", submissionMode=mode), facts(), NOW)
    assert taken.actions == ((f.CreateSubmitter(),) if mode == "K8sJobMode" else ())
    assert taken.status.job_deployment_status == "Running"
    assert taken.status.dashboard_url == "counter-fghij-head-svc.ns.svc.cluster.local:8265"
    assert taken.status.head_instance == HEAD


def test_interactive_jobs_wait_for_an_id() -> None:
    initializing = step(a_job("Initializing", submissionMode="InteractiveMode"), facts(), NOW)
    assert initializing.status.job_deployment_status == "Waiting"
    waiting = step(a_job("Waiting", submissionMode="InteractiveMode"), facts(), NOW)
    assert waiting.status.job_deployment_status == "Waiting"
    given = step(a_job("Waiting", submissionMode="InteractiveMode", jobId="raysubmit_1"), facts(), NOW)
    assert (given.status.job_deployment_status, given.status.job_id) == ("Running", "raysubmit_1")


@pytest.mark.parametrize("cluster", [None, a_cluster(is_going=True), a_cluster("", head_instance="")])
def test_an_interactive_job_that_loses_its_cluster_waits_for_another(cluster: ClusterFacts | None) -> None:
    job = a_job("Waiting", submissionMode="InteractiveMode")
    taken = step(job, facts(cluster=cluster), NOW)
    assert (taken.status.job_deployment_status, taken.status.dashboard_url) == ("Initializing", "")
    again = step(msgspec.structs.replace(job, status=taken.status), facts(cluster=None), NOW)
    assert again.actions == (f.CreateCluster("counter-fghij"),)


@pytest.mark.parametrize("mode", MODES)
def test_a_cluster_that_is_lost_after_its_spec_was_edited_away_cannot_be_made_anew_and_that_is_said(mode: str) -> None:
    job = a_job("Initializing", {"headInstance": ""}, submissionMode=mode, rayClusterSpec=None)
    taken = step(job, facts(cluster=None), NOW)
    assert (taken.actions, state(taken)) == ((), ("Initializing", "", ""))
    assert taken.trouble is not None
    assert (taken.trouble.reason, "spec.rayClusterSpec" in taken.trouble.message) == ("RayClusterNotFound", True)


def test_an_id_that_ray_does_not_know_is_said_and_can_be_corrected() -> None:
    mistyped = running({"jobId": "myjob"}, submissionMode="InteractiveMode", jobId="myjob")
    waiting = step(mistyped, facts(ray=NoSuchJob()), NOW)
    assert waiting.trouble is not None
    assert (waiting.trouble.reason, "correct spec.jobId" in waiting.trouble.message) == ("JobNotFound", True)
    corrected = running({"jobId": "myjob"}, submissionMode="InteractiveMode", jobId="my-job")
    taken = step(corrected, facts(ray=NoSuchJob()), NOW)
    assert (taken.status.job_deployment_status, taken.status.job_id) == ("Waiting", "")
    known = running({"jobId": "myjob", "jobStatus": "RUNNING"}, submissionMode="InteractiveMode", jobId="my-job")
    assert step(known, facts(ray=RUNS), NOW).status.job_id == "myjob", "a job that Ray runs is not exchanged"


SELECTED: JSON = {"clusterSelector": {"ray.io/cluster": "counter-fghij"}, "rayClusterSpec": None, "jobId": "mine"}


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
def test_a_job_of_the_same_id_that_is_older_is_not_taken_for_ones_own(mode: str) -> None:
    older = replace(SUCCESS, start_time=NOW - timedelta(hours=1))
    cluster = a_cluster(is_owned=False)
    taken = step(running({"jobId": "mine"}, submissionMode=mode, **SELECTED), facts(cluster=cluster, ray=older), NOW)
    assert state(taken) == ("Failed", "", "SubmissionFailed")
    assert "choose another spec.jobId" in taken.status.message
    own = replace(SUCCESS, start_time=NOW - timedelta(minutes=10, seconds=5))  # by a clock that is slow
    taken = step(running({"jobId": "mine"}, submissionMode=mode, **SELECTED), facts(cluster=cluster, ray=own), NOW)
    assert state(taken) == ("Complete", "SUCCEEDED", "")
    known = running({"jobId": "mine", "jobStatus": "RUNNING"}, submissionMode=mode, **SELECTED)
    assert state(step(known, facts(cluster=cluster, ray=older), NOW))[0] == "Complete", "it was believed before"


def test_of_two_rayjobs_with_one_id_on_one_cluster_the_older_has_it() -> None:
    job = a_job("Initializing", {"jobId": "mine"}, **SELECTED)
    taken = step(job, facts(cluster=a_cluster(is_owned=False), namesake="older"), NOW)
    assert state(taken) == ("Failed", "", "SubmissionFailed")
    assert "RayJob older has it" in taken.status.message


def test_an_attempt_is_submitted_as_it_began_though_the_spec_was_edited() -> None:
    began = a_cluster(submission_mode="K8sJobMode", head_instance="")
    taken = step(running(submissionMode="HTTPMode"), facts(cluster=began, submitter=RUNNING_SUBMITTER), NOW)
    assert (state(taken), taken.actions) == (("Failed", "", "HeadLost"), (f.DeleteSubmitter(),))


def test_a_sidecar_that_ended_early_does_not_wait_for_the_workers() -> None:
    job = a_job("Initializing", submissionMode="SidecarMode")
    taken = step(job, facts(cluster=a_cluster("", sidecar=DONE_SUBMITTER)), NOW)
    assert taken.status.job_deployment_status == "Running"


@pytest.mark.parametrize("instance", ["", "other-uid/0"])
def test_a_sidecar_that_is_lost_with_its_head_is_not_started_again(instance: str) -> None:
    job = a_job("Initializing", submissionMode="SidecarMode", backoffLimit=1)
    taken = step(job, facts(cluster=a_cluster("", head_instance=instance)), NOW)
    assert state(taken) == ("Retrying", "", "HeadLost")


def test_a_sidecar_that_was_lost_before_anybody_saw_it_fails_the_attempt() -> None:
    job = a_job("Initializing", {"headInstance": ""}, submissionMode="SidecarMode", backoffLimit=1)
    waits = step(job, facts(cluster=a_cluster("", head_instance="")), NOW)
    assert state(waits) == ("Initializing", "", ""), "its head may not be there yet"
    lost = step(job, facts(cluster=a_cluster("", head_instance="", has_lost_head=True)), NOW)
    assert state(lost) == ("Retrying", "", "HeadLost")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("said", "end"), [(SUCCESS, "Complete"), (FAILURE, "Failed"), (JobInfo("STOPPED", "by hand"), "Complete")]
)
def test_rays_word_ends_the_job(mode: str, said: JobInfo, end: str) -> None:
    known = facts(ray=said, submitter=DONE_SUBMITTER, cluster=a_cluster(sidecar=DONE_SUBMITTER))
    taken = step(running(submissionMode=mode), known, NOW)
    assert state(taken) == (end, said.status, "AppFailed" if end == "Failed" else "")
    assert taken.status.message == said.message
    assert taken.status.end_time == "2026-11-16T12:00:00Z"
    assert (taken.status.succeeded, taken.status.failed) == (int(said.status == "SUCCEEDED"), int(end == "Failed"))


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
@pytest.mark.parametrize("spec", [SUSPENDED, {"activeDeadlineSeconds": 1}, {}])
@pytest.mark.parametrize(
    ("ray", "stored"),
    [
        (SUCCESS, ""),
        (SUCCESS, "RUNNING"),
        (Silence("no route"), "SUCCEEDED"),
        (NoSuchJob(), "SUCCEEDED"),
        (RUNS, "SUCCEEDED"),
        (None, "SUCCEEDED"),
    ],
)
@pytest.mark.parametrize("submitter", [None, DONE_SUBMITTER, FAILED_SUBMITTER])
@pytest.mark.parametrize("cluster", [a_cluster(), a_cluster(head_instance="new/0"), None])
def test_success_is_never_overwritten(
    mode: str, spec: JSON, ray: Any, stored: str, submitter: SubmitterFacts | None, cluster: ClusterFacts | None
) -> None:
    if cluster is not None and mode == "SidecarMode":
        cluster = replace(cluster, sidecar=submitter)
    known = facts(ray=ray, submitter=submitter, cluster=cluster)
    taken = step(running({"jobStatus": stored}, submissionMode=mode, backoffLimit=3, **spec), known, NOW)
    assert state(taken) == ("Complete", "SUCCEEDED", "")


def test_the_submitter_may_print_to_the_end_before_the_job_is_over() -> None:
    printing = facts(ray=SUCCESS, submitter=RUNNING_SUBMITTER)
    assert state(step(running(), printing, NOW)) == ("Running", "SUCCEEDED", "")
    assert state(step(running(), printing, NOW + timedelta(seconds=300))) == ("Complete", "SUCCEEDED", "")


@pytest.mark.parametrize("cluster", [None, a_cluster(head_instance="")])
def test_a_success_is_kept_while_the_submitter_prints_and_the_head_goes(cluster: ClusterFacts | None) -> None:
    known = facts(ray=SUCCESS, submitter=RUNNING_SUBMITTER, cluster=cluster)
    assert state(step(running(), known, NOW)) == ("Running", "SUCCEEDED", "")


@pytest.mark.parametrize("mode", MODES)
def test_a_running_job_is_stopped_at_its_deadline(mode: str) -> None:
    known = facts(ray=RUNS, submitter=RUNNING_SUBMITTER, cluster=a_cluster(sidecar=RUNNING_SUBMITTER))
    taken = step(running(submissionMode=mode, activeDeadlineSeconds=600, backoffLimit=0), known, NOW)
    assert state(taken) == ("Failed", "RUNNING", "DeadlineExceeded")
    deleted = (f.DeleteSubmitter(),) if mode == "K8sJobMode" else ()
    assert taken.actions == (f.StopJob("counter-abcde"), *deleted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("cluster", "ray", "stored"),
    [
        (None, None, ""),
        (a_cluster(head_instance=""), Silence("refused"), "RUNNING"),
        (a_cluster(head_instance="head-uid/1"), Silence("refused"), "RUNNING"),
        (a_cluster(head_instance="new/0"), NoSuchJob(), ""),
        (a_cluster(), NoSuchJob(), "RUNNING"),
    ],
)
def test_a_lost_head_fails_the_attempt_in_every_mode(
    mode: str, cluster: ClusterFacts | None, ray: Any, stored: str
) -> None:
    known = facts(cluster=cluster, ray=ray, submitter=RUNNING_SUBMITTER)
    taken = step(running({"jobStatus": stored}, submissionMode=mode, backoffLimit=1), known, NOW)
    assert state(taken) == ("Failed" if mode == "InteractiveMode" else "Retrying", stored, "HeadLost")
    assert not any(isinstance(action, f.SubmitJob | f.CreateSubmitter | f.CreateCluster) for action in taken.actions)
    assert (f.DeleteSubmitter() in taken.actions) == (mode == "K8sJobMode"), "it could submit the job again"


def test_a_head_that_keeps_its_jobs_may_restart() -> None:
    cluster = a_cluster(head_instance="head-uid/1", keeps_jobs=True)
    known = facts(cluster=cluster, ray=RUNS, submitter=RUNNING_SUBMITTER)
    assert state(step(running({"jobStatus": "RUNNING"}), known, NOW)) == ("Running", "RUNNING", "")
    forgotten = facts(cluster=cluster, ray=NoSuchJob(), submitter=RUNNING_SUBMITTER)
    assert state(step(running({"jobStatus": "RUNNING"}), forgotten, NOW))[2] == "HeadLost"


@pytest.mark.parametrize(("word", "end"), [("SUCCEEDED", "Complete"), ("FAILED", "Failed"), ("", "Failed")])
def test_what_ray_told_the_submitter_counts_where_ray_can_no_longer_be_asked(word: str, end: str) -> None:
    submitter = replace(DONE_SUBMITTER, ray_status=word)
    lost = step(running({"jobStatus": "RUNNING"}), facts(cluster=None, ray=Silence("gone"), submitter=submitter), NOW)
    reasons = {"SUCCEEDED": "", "FAILED": "AppFailed", "": "HeadLost"}
    assert state(lost) == (end, word or "RUNNING", reasons[word])
    asked = step(running({"jobStatus": "RUNNING"}), facts(ray=RUNS, submitter=submitter), NOW)
    assert state(asked) == ("Running", "RUNNING", ""), "Ray itself is asked as long as it answers"


def test_what_ray_told_the_submitter_counts_where_the_operator_gets_no_answer() -> None:
    """As where the head's service leads to ready pods only, and the submitter that ended makes its pod unready."""
    submitter = replace(DONE_SUBMITTER, ray_status="SUCCEEDED")
    known, ended = facts(ray=Silence("refused"), submitter=submitter), submitter.finished_at or NOW
    soon = step(running({"jobStatus": "RUNNING"}), known, ended + timedelta(seconds=29))
    assert (state(soon), soon.look_at) == (("Running", "RUNNING", ""), ended + timedelta(seconds=30))
    later = step(running({"jobStatus": "RUNNING"}), known, ended + timedelta(seconds=30))
    assert state(later) == ("Complete", "SUCCEEDED", "")


def test_a_failed_submitter_does_not_fail_a_job_that_ray_runs() -> None:
    taken = step(running(), facts(ray=RUNS, submitter=FAILED_SUBMITTER), NOW)
    assert state(taken) == ("Running", "RUNNING", "")
    ended = step(running({"jobStatus": "RUNNING"}), facts(ray=SUCCESS, submitter=FAILED_SUBMITTER), NOW)
    assert state(ended) == ("Complete", "SUCCEEDED", "")


@pytest.mark.parametrize(
    ("submitter", "reason"),
    [(None, "SubmissionFailed"), (FAILED_SUBMITTER, "SubmissionFailed"), (RUNNING_SUBMITTER, ""), (DONE_SUBMITTER, "")],
)
def test_a_job_that_never_reached_ray_fails_with_its_submitter(submitter: SubmitterFacts | None, reason: str) -> None:
    taken = step(running(), facts(ray=NoSuchJob(), submitter=submitter), NOW)
    assert state(taken) == ("Failed" if reason else "Running", "", reason)


def test_ray_has_thirty_seconds_to_know_a_job_after_its_submitter_ended_well() -> None:
    known = facts(ray=NoSuchJob(), submitter=DONE_SUBMITTER)
    assert step(running(), known, NOW + timedelta(seconds=24)).status.job_deployment_status == "Running"
    assert state(step(running(), known, NOW + timedelta(seconds=25))) == ("Failed", "", "AppFailed")


@pytest.mark.parametrize("ray", [None, Silence("no answer")])
def test_a_failed_submitter_is_believed_only_after_ray_was_asked(ray: Any) -> None:
    assert step(running(), facts(ray=ray, submitter=FAILED_SUBMITTER), NOW).status.job_deployment_status == "Running"


def test_a_head_that_does_not_answer_has_five_minutes() -> None:
    known = facts(ray=Silence("refused"), submitter=RUNNING_SUBMITTER)
    first = step(running(), known, NOW)
    assert first.status.job_status_check_failure_start_time == "2026-11-16T12:00:00Z"
    assert first.trouble == Trouble("WaitingForDashboard", "refused")
    early = {"jobStatusCheckFailureStartTime": ago(299)}
    assert step(running(early), known, NOW).status.job_deployment_status == "Running"
    late = {"jobStatusCheckFailureStartTime": ago(300)}
    taken = step(running(late, backoffLimit=5), known, NOW)
    assert state(taken) == ("Failed", "", "JobStatusCheckTimeoutExceeded"), "not tried again"
    answered = step(running(late), facts(ray=RUNS, submitter=RUNNING_SUBMITTER), NOW)
    assert answered.status.job_status_check_failure_start_time is None


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "InteractiveMode"])
@pytest.mark.parametrize("answer", [NoSuchJob(), RUNS])
def test_any_answer_of_ray_ends_the_silence_before_it(mode: str, answer: RayAnswer) -> None:
    silent: JSON = {"jobStatusCheckFailureStartTime": ago(590)}
    job = running(silent, submissionMode=mode, jobId="counter-abcde", backoffLimit=3)
    answered = step(job, facts(ray=answer, submitter=RUNNING_SUBMITTER), NOW - timedelta(seconds=580)).status
    assert answered.job_status_check_failure_start_time is None
    later = step(
        msgspec.structs.replace(job, status=answered), facts(ray=Silence("lost"), submitter=RUNNING_SUBMITTER), NOW
    )
    assert later.status.job_deployment_status == "Running", "one question without an answer is no failure"


def test_a_question_that_was_not_asked_yet_does_not_end_the_silence() -> None:
    silent = {"jobStatusCheckFailureStartTime": ago(200)}
    taken = step(running(silent), facts(ray=None, submitter=RUNNING_SUBMITTER), NOW)
    assert taken.status.job_status_check_failure_start_time == ago(200)


def test_http_jobs_are_given_to_ray_by_the_operator() -> None:
    job = running(submissionMode="HTTPMode")
    given = step(job, facts(ray=NoSuchJob()), NOW)
    assert (f.SubmitJob("counter-abcde") in given.actions, given.status.job_status) == (True, "PENDING")
    for ray in (None, RUNS, Silence("refused")):
        assert f.SubmitJob("counter-abcde") not in step(job, facts(ray=ray), NOW).actions


def test_a_running_job_has_a_head_service_and_says_what_ray_says() -> None:
    taken = step(running(), facts(ray=RUNS, submitter=RUNNING_SUBMITTER), NOW)
    assert taken.actions == (f.KeepHeadService(),)
    assert (taken.status.job_status, taken.status.message) == ("RUNNING", "working")
    unknown = step(running(), facts(submitter=SubmitterFacts(trouble=Trouble("ErrImagePull", "no image"))), NOW)
    assert unknown.trouble == Trouble("ErrImagePull", "no image")


def test_the_status_of_the_cluster_is_copied_for_kueue() -> None:
    taken = step(running(), facts(ray=RUNS, submitter=RUNNING_SUBMITTER), NOW)
    assert taken.status.ray_cluster_status.state == "ready"
    newer = a_cluster(status=RayClusterStatus(state="ready", last_update_time="2026-11-16T11:59:59Z"))
    job = msgspec.structs.replace(running(), status=taken.status)
    assert step(job, facts(cluster=newer, ray=RUNS, submitter=RUNNING_SUBMITTER), NOW).status == taken.status


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_a_job_is_tried_as_often_as_it_says(failed: int) -> None:
    taken = step(running({"failed": failed}, backoffLimit=2), facts(ray=FAILURE, submitter=DONE_SUBMITTER), NOW)
    assert taken.status.job_deployment_status == ("Failed" if failed == 2 else "Retrying")
    assert taken.status.failed == failed + 1
    clusters = [attempt.ray_cluster_name for attempt in taken.status.failed_attempts]
    assert clusters == ([] if failed == 2 else ["counter-fghij"])


def test_the_list_of_failed_attempts_is_bounded() -> None:
    attempts = [{"rayClusterName": f"old-{number}"} for number in range(MOST_ATTEMPTS_KEPT)]
    job = running({"failed": 40, "failedAttempts": attempts}, backoffLimit=100)
    taken = step(job, facts(ray=FAILURE, submitter=DONE_SUBMITTER), NOW)
    assert len(taken.status.failed_attempts) == MOST_ATTEMPTS_KEPT
    assert taken.status.failed_attempts[-1].ray_cluster_name == "counter-fghij"


RETRY: JSON = {
    "failed": 1,
    "failedAttempts": [{"rayClusterName": "counter-fghij", "endTime": ago(10)}],
    "reason": "AppFailed",
}


def test_a_failed_attempt_is_torn_down_before_the_next() -> None:
    job = a_job("Retrying", RETRY, backoffLimit=1)
    taken = step(job, facts(submitter=DONE_SUBMITTER), NOW)
    assert taken.actions == (f.DeleteCluster("counter-fghij", "cluster-uid"), f.DeleteSubmitter())
    assert taken.status.job_deployment_status == "Retrying"
    going = step(job, facts(cluster=a_cluster(is_going=True)), NOW)
    assert (going.actions, going.status.job_deployment_status) == ((), "Retrying")


def test_there_is_a_pause_before_the_next_attempt() -> None:
    job = a_job("Retrying", RETRY, backoffLimit=1)
    early = step(job, facts(cluster=None), NOW - timedelta(seconds=1))
    assert (early.status.job_deployment_status, early.look_at) == ("Retrying", NOW)
    due = step(job, facts(cluster=None), NOW)
    assert state(due) == ("", "", "")
    assert (due.status.job_id, due.status.ray_cluster_name, due.status.head_instance) == ("", "", "")
    assert due.status.failed == 1
    assert [attempt.ray_cluster_name for attempt in due.status.failed_attempts] == ["counter-fghij"]


def test_a_cluster_can_be_used_again_for_the_next_attempt() -> None:
    job = a_job("Retrying", RETRY, backoffLimit=1, retryRayClusterStrategy="ReuseRayCluster", jobId="mine")
    assert step(job, facts(submitter=DONE_SUBMITTER), NOW).actions == (f.DeleteSubmitter(),)
    fresh = step(job, facts(), NOW)
    assert (fresh.status.job_deployment_status, fresh.status.ray_cluster_name) == ("", "counter-fghij")
    begun = step(msgspec.structs.replace(job, status=fresh.status), facts(), NOW)
    assert (begun.status.ray_cluster_name, begun.status.job_id) == ("counter-fghij", "mine-1")


def test_a_job_that_may_still_run_on_a_cluster_that_is_used_again_is_stopped() -> None:
    again: JSON = {"backoffLimit": 1, "retryRayClusterStrategy": "ReuseRayCluster"}
    known = facts(cluster=a_cluster(head_instance="head-uid/1"), ray=None, submitter=RUNNING_SUBMITTER)
    lost = step(running({"jobStatus": "RUNNING"}, **again), known, NOW)
    assert (state(lost)[2], lost.actions) == ("HeadLost", (f.DeleteSubmitter(), f.StopJob("counter-abcde")))
    anew = step(running({"jobStatus": "RUNNING"}, backoffLimit=1), known, NOW)
    assert anew.actions == (f.DeleteSubmitter(),), "it goes with its cluster"


def test_a_suspended_job_leaves_nothing_and_starts_anew() -> None:
    tearing = step(a_job("Suspending", **SUSPENDED), facts(submitter=RUNNING_SUBMITTER), NOW)
    assert tearing.actions == (f.DeleteCluster("counter-fghij", "cluster-uid", True), f.DeleteSubmitter(True))
    gone = step(a_job("Suspending", {"jobStatus": "RUNNING"}, **SUSPENDED), facts(cluster=None), NOW)
    assert state(gone) == ("Suspended", "", "")
    assert (gone.status.job_id, gone.status.ray_cluster_name, gone.status.dashboard_url) == ("", "", "")
    assert step(a_job("Suspended", **SUSPENDED), facts(cluster=None), NOW).status.job_deployment_status == "Suspended"
    assert step(a_job("Suspended"), facts(cluster=None), NOW).status.job_deployment_status == ""


def test_a_suspension_waits_for_pods_but_not_for_ever_and_not_where_redis_is_to_be_cleaned() -> None:
    job = a_job("Suspending", **SUSPENDED)
    redis = step(job, facts(cluster=a_cluster(keeps_jobs=True)), NOW)
    assert redis.actions == (f.DeleteCluster("counter-fghij", "cluster-uid"),)
    going = a_cluster(is_going=True, going_since=NOW)
    waits = step(job, facts(cluster=going), NOW + timedelta(seconds=299))
    assert (state(waits)[0], waits.look_at) == ("Suspending", NOW + timedelta(minutes=5))
    assert state(step(job, facts(cluster=going), NOW + timedelta(minutes=5)))[0] == "Suspended"
    retrying = a_job("Retrying", backoffLimit=1)
    assert state(step(retrying, facts(cluster=going), NOW + timedelta(hours=1)))[0] == "Retrying", "it may still run"


def test_anothers_cluster_is_never_deleted() -> None:
    job = a_job("Suspending", clusterSelector={"ray.io/cluster": "shared"})
    taken = step(job, facts(cluster=a_cluster(is_owned=False)), NOW)
    assert (taken.actions, taken.status.job_deployment_status) == ((), "Suspended")


def test_a_job_that_was_invalid_recovers_when_it_is_mended() -> None:
    fresh = a_job("ValidationFailed", {"rayClusterName": "", "reason": "ValidationFailed", "message": "wrong"})
    taken = step(fresh, facts(cluster=None), NOW)
    assert (state(taken), taken.status.message) == (("", "", ""), "")
    assert step(a_job("ValidationFailed"), facts(), NOW).status.job_deployment_status == "Initializing"


def test_a_state_that_nobody_knows_is_left_alone_and_told() -> None:
    taken = step(a_job("Dancing"), facts(), NOW)
    assert (taken.actions, taken.status.job_deployment_status) == ((), "Dancing")
    assert taken.trouble is not None


@pytest.mark.parametrize(
    ("status", "ray", "stops"),
    [
        ({"jobStatus": "RUNNING"}, RUNS, True),
        ({}, NoSuchJob(), True),
        ({"jobStatus": "SUCCEEDED"}, SUCCESS, False),
        ({"jobStatus": "RUNNING"}, Silence("refused"), False),
    ],
)
def test_a_job_is_stopped_before_its_rayjob_goes(status: JSON, ray: Any, stops: bool) -> None:
    assert last_actions(running(status), facts(ray=ray)) == ((f.StopJob("counter-abcde"),) if stops else ())
    assert last_actions(running(status), facts(cluster=None, ray=ray)) == ()


def test_a_job_on_anothers_cluster_is_told_to_stop_though_nobody_answered_before() -> None:
    job = running({"jobStatus": "RUNNING"}, clusterSelector={"ray.io/cluster": "shared"})
    known = facts(cluster=a_cluster(is_owned=False), ray=Silence("refused"))
    assert last_actions(job, known) == (f.StopJob("counter-abcde"),), "it would go on there"


def test_every_rule_says_when_it_applies() -> None:
    assert all(row.when and row.target and row.sources for row in TABLE)
    assert len({row.decide for row in TABLE}) == len(TABLE)
