"""What Kubernetes says of a RayJob is named in reports: deadlines, deletions, suspensions, and why it never ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raykeeper.history.entities.job import Job, JobUnknown, job_named
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.ingest.session import FixedTables, Session
from raykeeper.history.query.cache import session_version
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.rules.rayjobs import rayjob_end
from raykeeper.history.report.unstarted import NO_CLUSTER, NO_SESSION, rayjob_report, unstarted_report
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.kube_facts import ContainerFact, EventFact, PodFact
from raykeeper.layout.rayjobs import RayJobAttempt, RayJobRecord, RayJobState
from support.ingest_scene import SESSION, START_NS, finished_task
from support.report_scene import RECORD, a_job, no_logs, report_of

START = datetime.fromtimestamp(START_NS // 1_000_000_000, UTC)
HERE = SESSION.cluster
JOB_ID = "chosen-by-the-user"


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def state(seconds: float, status: str = "Running", **parts: Any) -> RayJobState:
    return RayJobState(at=after(seconds), deployment_status=status, **({"cluster": HERE, "job_id": JOB_ID} | parts))


def rayjob(*states: RayJobState, **parts: Any) -> RayJobRecord:
    known: dict[str, Any] = {
        "namespace": SESSION.namespace,
        "name": "train",
        "uid": "j-1",
        "clusters": (HERE,),
        "created_at": START,
    }
    return RayJobRecord(**(known | {"states": states} | parts))


def failed(reason: str, message: str = "", **parts: Any) -> RayJobRecord:
    return rayjob(state(1), state(40, "Failed", reason=reason, message=message, ended_at=after(39), **parts))


async def told(folder: Path, record: RayJobRecord, *jobs: dict[str, Any], job: str | None = None) -> Report:
    return await report_of(folder, finished_task(1), jobs=jobs, job=job, facts=KubeFacts(rayjobs=(record,)))


REASONS = [
    ("DeadlineExceeded", "rayjob_deadline", "RayJob train ran longer than its activeDeadlineSeconds"),
    ("PreRunningDeadlineExceeded", "rayjob_deadline", "did not begin to run within its preRunningDeadlineSeconds"),
    ("JobStatusCheckTimeoutExceeded", "silent_rayjob", "dashboard did not answer: the words"),
    ("SubmissionFailed", "unsubmitted_rayjob", "could not be submitted: the words"),
    ("HeadLost", "headless_rayjob", "lost the head that had its job: the words"),
    ("CannotStart", "unstartable_rayjob", "can never start: the words"),
]


@pytest.mark.parametrize(("reason", "rule", "title"), REASONS)
async def test_a_failed_rayjob_names_its_reason(tmp_path: Path, reason: str, rule: str, title: str) -> None:
    stopped = a_job("STOPPED", submission_id=JOB_ID)
    report = await told(tmp_path, failed(reason, "the words"), stopped)
    assert report.root_cause is not None
    assert (report.outcome, report.root_cause.rule) == (Outcome.FAILED, rule)
    assert title in report.root_cause.title
    assert report.root_cause.confidence is Confidence.CONFIRMED
    assert f"{reason}: the words" in [fact.text for fact in report.root_cause.evidence]


async def test_what_the_job_itself_failed_with_is_not_said_twice(tmp_path: Path) -> None:
    job = a_job("FAILED", submission_id=JOB_ID, driver_exit_code=7, message="exit code 7")
    report = await told(tmp_path, failed("AppFailed", "exit code 7"), job)
    assert [cause.rule for cause in report.causes] == ["failed_entrypoint"]


async def test_a_failure_that_nothing_else_explains_is_told_as_kubernetes_tells_it(tmp_path: Path) -> None:
    report = await told(tmp_path, failed("AppFailed", "the submitter ended, and Ray does not know the job"))
    assert report.root_cause is not None
    assert (report.root_cause.rule, report.root_cause.confidence) == ("failed_rayjob", Confidence.POSSIBLE)


async def test_a_rayjob_that_succeeded_is_no_cause(tmp_path: Path) -> None:
    record = rayjob(state(1), state(9, "Complete"), attempts=(RayJobAttempt(cluster=HERE, reason="HeadLost"),))
    report = await told(tmp_path, record, a_job("SUCCEEDED", submission_id=JOB_ID))
    assert (report.outcome, report.causes) == (Outcome.OK, ())


async def test_a_deletion_explains_a_job_that_was_stopped(tmp_path: Path) -> None:
    record = rayjob(state(1), deletion_requested_at=after(20), deleted_at=after(25))
    report = await told(tmp_path, record, a_job("STOPPED", submission_id=JOB_ID), job="train")
    assert report.root_cause is not None
    assert report.outcome is Outcome.STOPPED
    assert report.root_cause.title == "RayJob train was deleted before it ended"
    assert (report.root_cause.is_intended, report.root_cause.at) == (True, after(20))


def test_a_deletion_that_nobody_saw_says_so() -> None:
    end = rayjob_end(rayjob(state(1), deleted_at=after(900), was_away_at_deletion=True), HERE)
    assert end is not None
    assert "while nobody observed it" in end.evidence[0].text


def test_a_suspension_is_the_end_on_its_cluster_alone() -> None:
    resumed = {"cluster": "second", "job_id": "another"}
    record = rayjob(
        state(1),
        state(20, "Suspended", cluster="", job_id=""),
        state(60, "Running", **resumed),
        state(90, "Complete", **resumed),
        clusters=(HERE, "second"),
    )
    end = rayjob_end(record, HERE)
    assert end is not None
    assert (end.title, end.is_intended) == ("RayJob train was suspended before it ended", True)
    assert rayjob_end(record, "second") is None


def test_a_failed_attempt_is_the_end_on_its_cluster_alone() -> None:
    tried = RayJobAttempt(cluster=HERE, job_id=JOB_ID, reason="HeadLost", message="pod gone", ended_at=after(9))
    record = rayjob(
        state(1),
        state(30, "Running", cluster="second"),
        attempts=(tried,),
        clusters=(HERE, "second"),
        deleted_at=after(99),
    )
    on_first, on_second = rayjob_end(record, HERE), rayjob_end(record, "second")
    assert on_first is not None
    assert on_second is not None
    assert (on_first.rule, on_second.rule) == ("headless_rayjob", "deleted_rayjob")


async def test_a_job_is_found_by_the_name_of_its_rayjob_whatever_its_own_id(tmp_path: Path) -> None:
    jobs = [a_job("SUCCEEDED", submission_id="other"), a_job("STOPPED", submission_id=JOB_ID, job_id="02000000")]
    report = await told(tmp_path, failed("DeadlineExceeded"), *jobs, job="train")
    assert [job.submission_id for job in report.jobs] == [JOB_ID]
    by_id = await told(tmp_path / "again", failed("DeadlineExceeded"), *jobs, job=JOB_ID)
    assert by_id.causes == report.causes
    other = await told(tmp_path / "other", failed("DeadlineExceeded"), *jobs, job="other")
    assert other.causes == ()


async def test_a_rayjob_without_a_job_on_a_shared_cluster_has_a_report_of_its_own(tmp_path: Path) -> None:
    jobs = [a_job("FAILED", submission_id="other", driver_exit_code=1)]
    report = await told(tmp_path, failed("SubmissionFailed", "refused", job_id=""), *jobs, job="train")
    assert (report.jobs, report.counts.attempts) == ((), 0)
    assert [cause.rule for cause in report.causes] == ["unsubmitted_rayjob"]
    with pytest.raises(JobUnknown):
        await told(tmp_path / "unknown", failed("SubmissionFailed"), *jobs, job="nobody")


async def test_a_session_made_for_a_rayjob_that_never_submitted_says_why(tmp_path: Path) -> None:
    record = msgspec.structs.replace(RECORD, owner_kind="RayJob", owner_name="train")
    facts = KubeFacts(rayjobs=(failed("PreRunningDeadlineExceeded", "60 s", job_id=""),))
    report = await report_of(tmp_path, finished_task(1), job="train", facts=facts, record=record)
    assert report.root_cause is not None
    assert (report.outcome, report.root_cause.rule) == (Outcome.FAILED, "rayjob_deadline")


def test_what_kubernetes_says_of_a_rayjob_beats_the_shape_of_names() -> None:
    jobs = [Job(a_job(submission_id="train-abcde")), Job(a_job(submission_id=JOB_ID))]
    found = job_named(jobs, "train", (rayjob(state(1)),))
    assert found is not None
    assert found.submission_id == JOB_ID
    assert job_named(jobs, "train") is jobs[0]


async def test_kubernetes_is_not_asked_for_a_job_that_is_named_by_its_id(tmp_path: Path) -> None:
    """Who follows a job's log asks for it every second."""

    class Silent:
        async def read(self, namespace: str, cluster: str, uid: str) -> KubeFacts:
            raise AssertionError("nobody should ask")

    async def jobs() -> tuple[Job, ...]:
        return (Job(a_job(submission_id=JOB_ID)),)

    session = Session(SESSION, FixedTables({}), START, record=RECORD)
    context = SessionContext(session, Database(tmp_path), no_logs(), kubernetes=Silent())
    await context.cache.get(("job list", session_version(session)), jobs)
    assert (await find_job(context, JOB_ID)).submission_id == JOB_ID
    with pytest.raises(AssertionError):
        await find_job(context, "train")


NO_IMAGE = ContainerFact(name="ray-head", image="ray:typo", reason="ErrImagePull", message="not found")
HEAD = PodFact(at=after(5), uid="p-1", name="train-head", node_type="head", phase="Pending", containers=(NO_IMAGE,))


def test_an_image_that_could_not_be_pulled_stands_before_the_deadline_that_was_missed_for_it() -> None:
    record = failed("PreRunningDeadlineExceeded", "60 s", job_id="")
    report = rayjob_report(record, KubeFacts(pods=(HEAD,)))
    assert [cause.rule for cause in report.causes] == ["missing_image", "rayjob_deadline"]
    assert (report.outcome, report.session, report.job) == (Outcome.FAILED, NO_SESSION, "train")
    by_cluster = unstarted_report(SESSION.namespace, HERE, KubeFacts(pods=(HEAD,), rayjobs=(record,)))
    assert by_cluster.causes == report.causes


def test_a_rayjob_that_never_got_a_cluster_says_what_it_waits_for() -> None:
    words = "QuotaExceeded: exceeded quota: compute, requested: cpu=64"
    waiting = rayjob(state(1, "Initializing", cluster="", job_id="", waits_for=words), clusters=())
    report = rayjob_report(waiting, KubeFacts())
    assert (report.outcome, report.cluster, report.root_cause) == (Outcome.RUNNING, NO_CLUSTER, None)
    [cause] = report.causes
    assert words in cause.title


def test_warnings_tell_where_an_operator_writes_no_conditions() -> None:
    quota = EventFact(at=after(3), uid="e", type="Warning", reason="FailedToCreateRayCluster", message="no quota")
    waiting = rayjob(state(1, "", cluster="", job_id=""), clusters=(), warnings=(quota,))
    [cause] = rayjob_report(waiting, KubeFacts()).causes
    assert cause.title == "RayJob train has no cluster: no quota"
    dead = failed("DeadlineExceeded", cluster="", job_id="")
    [ended] = rayjob_report(msgspec.structs.replace(dead, clusters=(), warnings=(quota,)), KubeFacts()).causes
    assert "FailedToCreateRayCluster: no quota" in [fact.text for fact in ended.evidence]


def test_a_rayjob_that_waits_for_its_queue_says_so() -> None:
    report = rayjob_report(rayjob(state(1, "Suspended", cluster="", job_id=""), clusters=()), KubeFacts())
    assert report.outcome is Outcome.RUNNING
    assert "admitted by a queue" in report.causes[0].title


def test_an_invalid_rayjob_says_what_is_wrong() -> None:
    invalid = state(1, "ValidationFailed", reason="ValidationFailed", message="spec.entrypoint: empty", cluster="")
    report = rayjob_report(rayjob(invalid, clusters=()), KubeFacts())
    assert report.outcome is Outcome.FAILED
    assert report.causes[0].title == "RayJob train is not valid: spec.entrypoint: empty"
