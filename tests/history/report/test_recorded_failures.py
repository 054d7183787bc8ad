"""Real failures, recorded once: the report on each names its true root cause at the top, and what that rests on.

The whole text that a terminal shows is beside each archive, for people to read: `tests/golden/failures/<name>.yaml`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from rich.console import Console

from raykeeper.history.commands.report import opened_whole
from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.jobs_list.summary import job_summaries
from raykeeper.history.report.model import Confidence, Outcome, Report
from raykeeper.history.report.unstarted import report_on_unstarted
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from recording.archives import ARCHIVES
from support.golden import AssertGolden, files_without_test
from support.recorded_failures import NAMES, RecordedFailures


@dataclass(frozen=True)
class Truth:
    """What happened, as whoever let it happen knows."""

    rule: str
    title: str
    evidence: str
    """Words of a recorded fact that proves it."""
    confidence: Confidence = Confidence.CERTAIN
    outcome: Outcome = Outcome.FAILED
    causes: int = 1
    """How many there are; failures that follow from others have none of their own."""


TRUTHS = {
    "one-of-many": Truth(
        "raised_exception",
        "words_per_sentence raised ZeroDivisionError: division by zero",
        "RayTaskError(ZeroDivisionError)",
    ),
    "failed-dependency": Truth(
        "raised_exception",
        "load_shard raised FileNotFoundError: shard 2 is not in /data/shards",
        "an argument of normalise was the error of load_shard",
    ),
    "out-of-memory": Truth("job_out_of_memory", "Ray killed build_index on", "actual memory used="),
    "lost-node": Truth("lost_node", "was lost while simulate ran on it", "NodeDiedError"),
    "killed-head": Truth(
        "crashed_cluster",
        "the cluster's head was lost",
        "the head's heartbeats stopped",
        Confidence.LIKELY,
    ),
    "failing-constructor": Truth(
        "raised_exception",
        "Model.__init__ raised OSError: weights resnet-50.bin have the wrong size",
        "actor Model died because its constructor raised an exception",
    ),
    "exhausted-restarts": Truth(
        "crashed_worker",
        "the process of actor Decoder died before Decoder.decode ended, and no restart was left",
        "ActorDiedError",
        Confidence.LIKELY,
    ),
    "bad-job-environment": Truth(
        "failed_job_environment",
        "the runtime environment of job nightly failed: FileNotFoundError",
        "/releases/7/app.zip",
    ),
    "bad-task-environment": Truth(
        "failed_environment",
        "a runtime environment failed: FileNotFoundError",
        "/releases/7/features.zip",
    ),
    "unschedulable": Truth(
        "never_scheduled",
        "embed waited for resources that never came: CPU 1, GPU 4",
        "GetTimeoutError",
        Confidence.LIKELY,
    ),
    "cancelled-tasks": Truth(
        "cancelled_task_of_job", "crawl was cancelled, and job nightly needed its result", "TaskCancelledError"
    ),
    "stopped-job": Truth(
        "ended_with_job",
        "the job was stopped by its user while tasks ran",
        "Job was intentionally stopped.",
        outcome=Outcome.STOPPED,
    ),
    "job-timeout": Truth(
        "timed_out_entrypoint",
        "the entrypoint of job nightly ran out of time and was ended by `timeout`",
        "exit code 124 of: timeout 15 python",
        causes=2,
    ),
    "container-oom-killed": Truth(
        "oom_killed_container",
        "was killed for its memory limit",
        "ended with reason OOMKilled, exit code 137",
    ),
    "named-trainer": Truth(
        "crashed_worker",
        "the process of actor trainer-2 (Trainer) died before Trainer.step ended, and no restart was left, "
        "its last words: CUDA error: out of memory while allocating 4.00 GiB",
        "rank 2 step 2",
        Confidence.LIKELY,
    ),
    "too-many-failed": Truth(
        "failed_entrypoint",
        "the driver of job nightly raised RuntimeError: too many failed shards: 8 of 40 (limit 5) "
        "(too_many_failed.py:27)",
        "5 x shard: OSError: s3 read timed out for object part-7 of gpt2",
        causes=3,
    ),
    "quiet-deaths": Truth(
        "unasked_death",
        "actor cache-eu (Cache) died, its last words: cache: arena 7 is corrupt",
        "SYSTEM_ERROR",
        Confidence.LIKELY,
        Outcome.WITH_FAILURES,
    ),
    "data-bad-record": Truth(
        "raised_exception",
        "ReadRange->Map(parse) raised ValueError: could not convert string to float: '12,99 EUR' "
        "(data_bad_record.py:14)",
        "in parse",
    ),
    "data-bad-model": Truth(
        "raised_exception",
        "MapBatches(Scorer) raised ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0",
        "in __call__",
    ),
    "train-diverged": Truth(
        "failed_entrypoint",
        "rank 1 of job nightly raised FloatingPointError: loss is NaN at epoch 4 on rank 1 (train_diverged.py:13)",
        "in loss_of",
        causes=2,
    ),
    "train-killed-worker": Truth(
        "dead_actor",
        "the process of actor RayTrainWorker died, its last words: CUDA error: out of memory while allocating 4.00 GiB",
        "[Rank 1 Error Snippet]",
        Confidence.LIKELY,
        causes=2,
    ),
    "tune-exploding-trials": Truth(
        "raised_exception",
        "a trial of objective raised OverflowError: loss exploded with lr=1.0 (tune_exploding_trials.py:13)",
        "in objective",
        outcome=Outcome.WITH_FAILURES,
    ),
    "serve-crashing-replica": Truth(
        "unasked_death",
        "of deployment Model of application chat died, its last words: "
        "tokenizer: vocabulary entry 50257 is out of range",
        "SYSTEM_ERROR",
        Confidence.LIKELY,
        Outcome.WITH_FAILURES,
    ),
    "serve-bad-model": Truth(
        "relayed_exception",
        "FileNotFoundError: weights llama-8b.safetensors are not in /models (serve_bad_model.py:11), so that "
        "RuntimeError: Deploying application chat failed",
        "in __init__",
        Confidence.LIKELY,
    ),
    "pod-evicted": Truth("evicted_pod", "was evicted", "EvictionByEvictionAPI"),
    "pod-preempted": Truth(
        "preempted_pod", "was preempted for a pod of higher priority", "Preempted: Preempted by pod"
    ),
    "pod-lost": Truth("deleted_pod", "was deleted", "Killing: Stopping container ray"),
    "head-pod-lost": Truth("deleted_pod", "the cluster's head was lost: pod head-pod-lost-head-", "heartbeats stopped"),
    "group-unschedulable": Truth(
        "unschedulable_pod",
        "found no node: 0/1 nodes are available: 1 Insufficient cpu",
        "FailedScheduling",
        Confidence.LIKELY,
    ),
}
"""By the archive's name. `job-timeout` has a second cause: its tasks were open when the job ended. So have those of Ray
Train: its controller ended an actor over an open call, by intention."""


WELL = ("went-well", "intended-ends", "serve-went-well", "serve-failing-requests")
"""In which nothing failed that Ray records: a replica that answers a request with 500 is no failure to Ray."""


@pytest.mark.parametrize("name", [name for name in WELL if name != "went-well"])
def test_what_the_program_asked_for_is_no_failure(name: str, recorded_reports: Mapping[str, Report]) -> None:
    report = recorded_reports[name]
    assert (report.outcome, report.root_cause) == (Outcome.OK, None)
    assert all(cause.is_intended for cause in report.causes)


@pytest.mark.parametrize("name", TRUTHS)
def test_the_root_cause_is_the_true_one_with_its_evidence(name: str, recorded_reports: Mapping[str, Report]) -> None:
    report, truth = recorded_reports[name], TRUTHS[name]
    cause = report.root_cause
    assert cause is not None
    assert (report.outcome, cause.rule, cause.confidence) == (truth.outcome, truth.rule, truth.confidence)
    assert truth.title in cause.title
    assert truth.evidence in "\n".join(fact.text for fact in cause.evidence)
    assert len(report.causes) == truth.causes, [cause.title for cause in report.causes]
    assert cause.at is not None


def test_the_session_that_went_well_says_so_and_tells_what_a_retry_hid(recorded_reports: Mapping[str, Report]) -> None:
    report = recorded_reports["went-well"]
    assert (report.outcome, report.root_cause) == (Outcome.OK, None)
    assert (report.counts.failures, report.counts.recovered) == (1, 1)
    [hidden] = report.causes
    assert hidden.title == "fetch raised ConnectionError: the server did not answer (went_well.py:20)"


async def test_lists_of_jobs_agree_with_the_report(recorded_failures: RecordedFailures) -> None:
    told = {}
    async with recorded_failures.served() as history:
        for name in ("serve-crashing-replica", "intended-ends"):
            context = await opened_whole(history, recorded_failures.sessions[name])
            [told[name]] = [job for job in await job_summaries(context) if job.submission_id == "nightly"]
    crashed, well = told["serve-crashing-replica"], told["intended-ends"]
    assert (crashed.status, crashed.outcome, crashed.is_provisional) == ("SUCCEEDED", "with failures", False)
    assert "of deployment Model of application chat died" in crashed.failure
    assert (well.status, well.outcome, well.failure) == ("SUCCEEDED", "", "")


async def test_a_head_that_never_started_is_explained_without_a_session(recorded_failures: RecordedFailures) -> None:
    name = "head-image-missing"
    assert name not in recorded_failures.sessions
    store = open_store(parse_store_url(recorded_failures.store.as_uri(), {}))
    report = await report_on_unstarted(store, "recorded", name)
    assert report is not None
    assert (report.outcome, [cause.rule for cause in report.causes]) == (Outcome.FAILED, ["missing_image"])
    assert "image registry.example/team/ray:2.60.0-typo, ErrImageNeverPull" in report.causes[0].title
    assert await report_on_unstarted(store, "recorded", "nobody") is None


def test_every_recorded_failure_is_looked_at() -> None:
    assert set(NAMES) == {*TRUTHS, *WELL, "careless-secrets", "head-image-missing"}
    assert files_without_test(ARCHIVES, [*TRUTHS, *WELL]) == []


@pytest.mark.parametrize("name", [*TRUTHS, *WELL])
def test_the_terminal_shows_it_as_it_did(
    name: str, recorded_reports: Mapping[str, Report], assert_golden: AssertGolden
) -> None:
    assert_golden(ARCHIVES / f"{name}.yaml", shown(recorded_reports[name]))


def shown(report: Report) -> str:
    """What a terminal shows, without the blanks at the ends of lines, which no reader sees."""
    printed = io.StringIO()
    ReportScreen(Console(file=printed, highlight=False, soft_wrap=True)).show(report)
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) + "\n"
