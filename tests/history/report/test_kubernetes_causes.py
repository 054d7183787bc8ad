"""What Kubernetes did to pods explains what Ray saw of it, and what never came to be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from raykeeper.history.entities.job import Job
from raykeeper.history.report.causes import explain_all
from raykeeper.history.report.input import Ending, Kubernetes, ReportInput
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.pod_failures import PodFailure, pod_failures_of
from raykeeper.history.report.shape import job_outcome
from raykeeper.history.report.unstarted import unstarted_report
from raykeeper.history.store.kube_facts import KubeFacts
from raykeeper.layout.kube_facts import ClusterFact, ContainerFact, EventFact, PodFact
from support.ingest_scene import START_NS, finished_task
from support.report_scene import RECORD, a_job, failed, node_died, report_of

START = datetime.fromtimestamp(START_NS // 1_000_000_000, UTC)
RUNNING = ContainerFact(name="ray-worker", image="ray:2.60", state="running")


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def pod(seconds: float, *containers: ContainerFact, **facts: Any) -> PodFact:
    """A worker's pod so many seconds after the start."""
    known: dict[str, Any] = {"node_type": "worker", "phase": "Running", "node": "machine-1", "pod_ip": "10.0.0.9"}
    return PodFact(
        at=after(seconds), uid="pod-1", name="train-worker-1", containers=containers or (RUNNING,), **(known | facts)
    )


def event(reason: str, message: str, seconds: float) -> EventFact:
    return EventFact(at=after(seconds), uid=reason, type="Warning", reason=reason, message=message, about_uid="pod-1")


OOM_KILLED = ContainerFact(
    name="ray-worker", state="terminated", reason="OOMKilled", exit_code=137, finished_at=after(11)
)
RESTARTED = ContainerFact(
    name="ray-worker",
    state="running",
    restarts=1,
    last_reason="OOMKilled",
    last_exit_code=137,
    last_finished_at=after(11),
)
NO_IMAGE = ContainerFact(
    name="ray-worker", image="ray:typo", state="waiting", reason="ImagePullBackOff", message="not found"
)
CRASHING = ContainerFact(
    name="ray-worker", state="waiting", reason="CrashLoopBackOff", last_reason="Error", last_exit_code=2
)
WAITING = {"phase": "Pending", "pod_ip": "", "node": ""}

TROUBLES = [
    (
        [pod(1), pod(12, OOM_KILLED)],
        "oom_killed_container",
        "ray-worker of pod train-worker-1 was killed for its memory",
    ),
    ([pod(1), pod(13, RESTARTED)], "oom_killed_container", "killed for its memory limit"),
    (
        [pod(1), pod(12, phase="Failed", reason="Evicted", message="low on disk")],
        "evicted_pod",
        "was evicted by its node",
    ),
    ([pod(1), pod(12, disruption="EvictionByEvictionAPI")], "evicted_pod", "was evicted"),
    ([pod(1), pod(12, disruption="PreemptionByScheduler")], "preempted_pod", "preempted for a pod of higher priority"),
    ([pod(1), pod(12, disruption="DeletionByTaintManager")], "lost_pod_node", "a node that is not ready"),
    ([pod(1), pod(12, reason="NodeLost")], "lost_pod_node", "was on a node that was lost"),
    ([pod(1), pod(12, deleted=True)], "deleted_pod", "pod train-worker-1 was deleted"),
    ([pod(1, NO_IMAGE, **WAITING)], "missing_image", "never started: image ray:typo, ImagePullBackOff: not found"),
    ([pod(1, CRASHING, **WAITING)], "crashing_container", "CrashLoopBackOff, exit code 2"),
    (
        [pod(1, ContainerFact(name="ray-worker"), unschedulable="0/3 nodes are available", **WAITING)],
        "unschedulable_pod",
        "found no node: 0/3 nodes are available",
    ),
]


@pytest.mark.parametrize(
    ("pods", "rule", "title"), TROUBLES, ids=[f"{number}-{row[1]}" for number, row in enumerate(TROUBLES)]
)
def test_each_trouble_is_told_by_the_states_of_its_pod(pods: list[PodFact], rule: str, title: str) -> None:
    [failure] = pod_failures_of(KubeFacts(tuple(pods), (event("Failed", "told by an event", 12),)))
    assert failure.rule == rule
    assert title in failure.title
    assert "told by an event" in failure.evidence[-1].text


@pytest.mark.parametrize(
    "pods",
    [
        [pod(1)],
        [pod(1, ContainerFact(name="ray-worker"), unschedulable="0/3 nodes", **WAITING), pod(9)],
        [pod(1, NO_IMAGE, **WAITING), pod(30)],
        [pod(1), pod(41, deleted=True)],
    ],
    ids=["runs", "found a node at last", "got its image at last", "went with its cluster"],
)
def test_what_came_to_a_good_end_is_no_trouble(pods: list[PodFact]) -> None:
    cluster = ClusterFact(at=after(42), uid="c", name="train", deletion_requested_at=after(40), deleted=True)
    assert pod_failures_of(KubeFacts(tuple(pods), cluster=cluster)) == ()


def first(report: Report) -> tuple[str, str, int]:
    assert report.root_cause is not None
    return report.root_cause.rule, report.root_cause.confidence, report.root_cause.failures


@pytest.mark.parametrize("error_type", ["NODE_DIED", "WORKER_DIED", "ACTOR_DIED", "OBJECT_LOST"])
async def test_a_pod_that_kubernetes_killed_explains_the_node_that_ray_lost(error_type: str, tmp_path: Path) -> None:
    lost = [*node_died("UNEXPECTED_TERMINATION", "gone", 40), *failed(1, error_type, "gone", seconds=14)]
    report = await report_of(tmp_path, lost, facts=KubeFacts((pod(1), pod(12, OOM_KILLED))))
    assert first(report) == ("oom_killed_container", Confidence.CONFIRMED, 1)
    assert len(report.causes) == 1


async def test_what_happened_to_another_pod_or_an_hour_before_explains_nothing(tmp_path: Path) -> None:
    lost = [*node_died("UNEXPECTED_TERMINATION", "gone", 40), *failed(1, "NODE_DIED", "gone", seconds=14)]
    other = KubeFacts((pod(1, pod_ip="10.0.0.8"), pod(12, OOM_KILLED, pod_ip="10.0.0.8")))
    earlier = KubeFacts((pod(-3700), pod(-3600, disruption="EvictionByEvictionAPI")))
    assert first(await report_of(tmp_path / "other", lost, facts=other))[0] == "lost_node"
    assert first(await report_of(tmp_path / "earlier", lost, facts=earlier))[0] == "lost_node"


async def test_an_exception_stays_an_exception_although_a_pod_was_killed(tmp_path: Path) -> None:
    raised = failed(1, "TASK_EXECUTION_EXCEPTION", "ValueError: boom", seconds=12)
    report = await report_of(tmp_path, raised, facts=KubeFacts((pod(1), pod(12, OOM_KILLED))))
    assert first(report)[0] == "raised_exception"


async def test_tasks_without_resources_wait_for_pods_that_found_no_node(tmp_path: Path) -> None:
    waiting = failed(1, "WORKER_DIED", "job ended", worker="", node="")
    pending = pod(2, ContainerFact(name="ray-worker"), unschedulable="0/3 nodes: no GPU", **WAITING)
    report = await report_of(tmp_path, waiting, facts=KubeFacts((pending,)))
    assert first(report) == ("unschedulable_pod", Confidence.LIKELY, 1)


async def test_a_job_that_never_began_is_explained_by_pods_that_never_started(tmp_path: Path) -> None:
    job = a_job("PENDING", job_id=None, end_time=None)
    report = await report_of(tmp_path, [], jobs=[job], facts=KubeFacts((pod(1, NO_IMAGE, **WAITING),)))
    assert first(report)[0] == "missing_image"
    assert report.outcome is Outcome.FAILED


async def test_a_session_that_went_well_went_well_although_a_spare_pod_never_started(tmp_path: Path) -> None:
    facts = KubeFacts((pod(1, NO_IMAGE, **WAITING),))
    report = await report_of(tmp_path, finished_task(1), jobs=[a_job()], facts=facts)
    assert (report.outcome, report.root_cause) == (Outcome.OK, None)


def test_a_head_that_never_started_has_a_report_without_a_session() -> None:
    facts = KubeFacts((pod(1, NO_IMAGE, **(WAITING | {"node_type": "head"})),), (event("Failed", "no such image", 2),))
    report = unstarted_report("team-a", "train", facts)
    assert (report.outcome, report.session) == (Outcome.FAILED, "none")
    assert first(report) == ("missing_image", Confidence.CONFIRMED, 0)
    assert [fact.source for fact in report.root_cause.evidence] == ["pod", "kubernetes"] if report.root_cause else False


def test_the_heads_trouble_comes_before_the_workers() -> None:
    worker = pod(1, NO_IMAGE, **WAITING)
    head = PodFact(at=after(5), uid="head", name="train-head", node_type="head", unschedulable="0/3 nodes")
    report = unstarted_report("team-a", "train", KubeFacts((worker, head)))
    assert [cause.rule for cause in report.causes] == ["unschedulable_pod", "missing_image"]


def test_a_cluster_of_which_nothing_bad_is_known_did_not_fail() -> None:
    assert unstarted_report("team-a", "train", KubeFacts((pod(1),))).outcome is Outcome.RUNNING


async def test_a_rayjob_is_named_by_its_own_name_or_by_its_last_submission(tmp_path: Path) -> None:
    jobs = [
        a_job("FAILED", submission_id="nightly-aaaaa", message="1", start_time=1),
        a_job("SUCCEEDED", submission_id="nightly-bbbbb", job_id="02000000"),
    ]
    last = await report_of(tmp_path / "last", [], jobs=jobs, job="nightly")
    assert [job.submission_id for job in last.jobs] == ["nightly-bbbbb"]
    made_for = type(RECORD)(**{name: getattr(RECORD, name) for name in RECORD.__struct_fields__} | OWNER)
    nothing = await report_of(tmp_path / "nothing", [], job="nightly", record=made_for)
    assert (nothing.job, nothing.jobs) == ("nightly", ())


OWNER = {"owner_kind": "RayJob", "owner_name": "nightly"}


def test_troubles_are_in_the_order_of_time() -> None:
    states = (pod(1), pod(12, OOM_KILLED), pod(30, disruption="EvictionByEvictionAPI"))
    found: list[PodFailure] = list(pod_failures_of(KubeFacts(states)))
    assert [one.rule for one in found] == ["oom_killed_container", "evicted_pod"]


async def test_what_is_missing_of_kubernetes_is_said(tmp_path: Path) -> None:
    nothing = await report_of(tmp_path / "nothing", [])
    assert [one.what for one in nothing.unknown] == ["nothing of Kubernetes"]
    lossy = await report_of(tmp_path / "lossy", [], facts=KubeFacts((pod(1),), lost_events=7))
    assert ["7 Events were lost" in one.text for one in lossy.unknown] == [True]
    complete = await report_of(tmp_path / "complete", [], facts=KubeFacts((pod(1),)))
    assert complete.unknown == ()


@pytest.mark.parametrize(("seconds", "rule"), [(590, "oom_killed_container"), (30, "crashed_cluster")])
def test_what_happened_to_the_heads_pod_explains_its_silence_only_if_it_was_then(seconds: float, rule: str) -> None:
    killed = ContainerFact(name="ray-head", state="running", last_reason="OOMKilled", last_finished_at=after(seconds))
    head = pod(seconds, killed, node_type="head")
    job = job_outcome(Job(a_job("RUNNING", end_time=None)))
    kubernetes = Kubernetes(pod_failures_of(KubeFacts((head,))))
    [cause] = explain_all(ReportInput((), (job,), Ending(after(600), is_crash=True), kubernetes)).causes
    assert cause.rule == rule


@pytest.mark.parametrize(("lost_at", "rule"), [(30, "oom_killed_container"), (400, "crashed_cluster")])
def test_a_job_went_with_its_head_though_the_session_went_on_with_the_next_one(lost_at: float, rule: str) -> None:
    killed = ContainerFact(name="ray-head", state="running", last_reason="OOMKilled", last_finished_at=after(31))
    unfound = {
        "error_type": "JOB_SUPERVISOR_ACTOR_START_FAILURE",
        "message": "Unexpected error occurred: failed to get job supervisor.",
        "end_time": (START_NS // 1_000_000) + 500_000,
    }
    report_input = ReportInput(
        (),
        (job_outcome(Job(a_job("FAILED", **unfound))),),
        kubernetes=Kubernetes(pod_failures_of(KubeFacts((pod(31, killed, node_type="head"),)))),
        lost_heads=(after(-5), after(lost_at)),
    )
    [cause] = explain_all(report_input).causes
    assert (cause.rule, cause.ends_job) == (rule, True)
    assert "head was lost" in cause.title


def test_a_head_that_was_killed_twice_in_its_pod_is_explained_by_the_time_that_ended_it() -> None:
    deaths = [
        pod(at, ContainerFact(name="ray-head", last_reason="OOMKilled", last_finished_at=after(at)), node_type="head")
        for at in (30, 590)
    ]
    failures = pod_failures_of(KubeFacts((*deaths, *deaths)))
    assert [failure.at for failure in failures] == [after(30), after(590)]
    job = job_outcome(Job(a_job("RUNNING", end_time=None)))
    [cause] = explain_all(ReportInput((), (job,), Ending(after(600), is_crash=True), Kubernetes(failures))).causes
    assert (cause.rule, cause.at) == ("oom_killed_container", after(590))
