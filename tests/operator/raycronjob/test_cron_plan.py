"""When RayJobs are made, replaced, left out and forgotten."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from bed.waiting import BUSY_FACTOR
from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectMeta
from raykeeper.api.raycronjob import RayCronJob, RayCronJobSpec, RayCronJobStatus
from raykeeper.api.rayjob import RayJob, RayJobStatus
from raykeeper.operator.gates import FeatureGates
from raykeeper.operator.raycronjob.plan import CronPlan, desired_rayjob, plan, rayjob_name
from raykeeper.operator.raycronjob.schedule import parse_schedule
from raykeeper.operator.raycronjob.validation import violations
from support.rayjob_facts import CLUSTER_SPEC

NOW = datetime(2026, 11, 16, 12, 0, 30, tzinfo=UTC)
TEMPLATE: JSON = {"entrypoint": "python job.py", "rayClusterSpec": CLUSTER_SPEC}


def a_cron(last: str | None = "2026-11-16T11:00:00Z", name: str = "nightly", **spec: Any) -> RayCronJob:
    metadata = ObjectMeta(
        name=name,
        namespace="ns",
        uid="cron-uid",
        creation_timestamp="2026-11-01T00:00:00Z",
        labels={"kueue.x-k8s.io/queue-name": "gpu"},
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"},
    )
    body = {"schedule": "0 * * * *", "jobTemplate": TEMPLATE, **spec}
    return RayCronJob(metadata, msgspec.convert(body, RayCronJobSpec), RayCronJobStatus(last_schedule_time=last))


def a_child(name: str, state: str, end: str | None = None, **metadata: Any) -> RayJob:
    status = RayJobStatus(
        job_deployment_status=state, job_status="SUCCEEDED" if state == "Complete" else "", end_time=end
    )
    return RayJob(ObjectMeta(name=name, uid=f"{name}-uid", creation_timestamp=name, **metadata), status=status)


def planned(cron: RayCronJob, *jobs: RayJob, now: datetime = NOW) -> CronPlan:
    return plan(cron, parse_schedule(cron.spec.schedule, UTC), jobs, now)


def test_a_rayjob_is_made_when_it_is_due() -> None:
    taken = planned(a_cron())
    assert taken.create == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert taken.status.last_schedule_time == "2026-11-16T12:00:00Z"
    assert taken.look_at == datetime(2026, 11, 16, 13, tzinfo=UTC)
    assert planned(a_cron("2026-11-16T12:00:00Z")).create is None


def test_after_a_month_away_one_rayjob_is_made() -> None:
    assert planned(a_cron("2026-10-16T11:00:00Z")).create == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert planned(a_cron(None)).create == datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_what_is_too_late_is_left_out() -> None:
    assert planned(a_cron(startingDeadlineSeconds=10)).create is None
    assert planned(a_cron(startingDeadlineSeconds=40)).create is not None


def test_nothing_is_made_while_suspended() -> None:
    taken = planned(a_cron(suspend=True))
    assert (taken.create, taken.look_at) == (None, None)


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace", None])
def test_a_job_that_still_runs_is_dealt_with_by_the_policy(policy: str | None) -> None:
    running, ended = a_child("b", "Running"), a_child("a", "Complete", "2026-11-16T11:30:00Z")
    taken = planned(a_cron(concurrencyPolicy=policy), running, ended)
    assert (taken.create is None) == (policy == "Forbid")
    assert bool(taken.skipped) == (policy == "Forbid")
    assert taken.replace == ((running,) if policy == "Replace" else ())
    assert [active.name for active in taken.status.active] == ["b"]
    assert taken.status.last_successful_time == "2026-11-16T11:30:00Z"


def test_only_so_many_ended_jobs_are_kept_as_was_asked_for() -> None:
    jobs = [a_child(name, "Complete") for name in "abcd"] + [a_child(name, "Failed") for name in "xyz"]
    assert planned(a_cron(), *jobs).forget == ()
    taken = planned(a_cron(successfulJobsHistoryLimit=3, failedJobsHistoryLimit=0), *jobs)
    assert [job.metadata.name for job in taken.forget] == ["a", "x", "y", "z"]


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_rayjob_that_was_made_but_not_written_down_is_known_by_its_moment(policy: str) -> None:
    made = a_child("b", "Running", annotations={labels.CRONJOB_SCHEDULED_TIMESTAMP: "2026-11-16T12:00:00Z"})
    taken = planned(a_cron(concurrencyPolicy=policy), made)
    assert (taken.create, taken.replace, taken.skipped) == (None, (), "")
    assert taken.status.last_schedule_time == "2026-11-16T12:00:00Z"


def test_many_thousand_rayjobs_that_nobody_deleted_are_sorted_out_at_once() -> None:
    jobs = [a_child(f"job-{number:05}", "Complete") for number in range(20_000)]
    began = time.process_time()
    taken = planned(a_cron(successfulJobsHistoryLimit=3), *jobs)
    assert [job.metadata.name for job in taken.forget] == [f"job-{number:05}" for number in range(100)]
    assert taken.look_at == NOW, "the next pass goes on"
    assert time.process_time() - began < 2 * BUSY_FACTOR, "comparing each with each took minutes"


def test_a_job_that_is_being_deleted_still_runs_and_is_not_deleted_again() -> None:
    going = a_child("b", "Running", deletion_timestamp="2026-11-16T12:00:00Z")
    assert planned(a_cron(concurrencyPolicy="Forbid"), going).skipped
    assert planned(a_cron(concurrencyPolicy="Replace"), going).replace == ()


@pytest.mark.parametrize(
    ("schedule", "name"),
    [("0 * * * *", "nightly-29913840"), ("@every 1m", "nightly-29913840"), ("@every 59s", "nightly-1794830400")],
)
def test_a_rayjob_is_named_after_its_minute_unless_two_share_one(schedule: str, name: str) -> None:
    moment = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert rayjob_name(a_cron(), parse_schedule(schedule, UTC), moment) == name


def test_a_rayjob_carries_the_queue_and_its_moment() -> None:
    made = desired_rayjob(a_cron(), TEMPLATE, "nightly-29913840", datetime(2026, 11, 16, 12, tzinfo=UTC))
    assert made["metadata"]["name"] == "nightly-29913840"
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "gpu", "ray.io/cronjob-name": "nightly"}
    assert made["metadata"]["annotations"] == {
        "team": "a",
        "ray.io/cronjob-scheduled-timestamp": "2026-11-16T12:00:00Z",
    }
    assert made["spec"] == TEMPLATE


@pytest.mark.parametrize(
    ("cron", "field"),
    [
        (a_cron(schedule="0 0 30 2 *"), "spec.schedule"),
        (a_cron(schedule="TZ=UTC * * * * *"), "spec.schedule"),
        (a_cron(timeZone="Europe/Atlantis"), "spec.timeZone"),
        (a_cron(timeZone="../etc/passwd"), "spec.timeZone"),
        (a_cron(name="a" * 37), "metadata.name"),
        (a_cron(name="1abc"), "metadata.name"),
        (a_cron(jobTemplate=TEMPLATE | {"submissionMode": "Telepathy"}), "spec.jobTemplate.submissionMode"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(cron: RayCronJob, field: str) -> None:
    assert [violation.field for violation in violations(cron, FeatureGates())] == [field]


def test_what_makes_sense_is_accepted() -> None:
    assert violations(a_cron(timeZone="Europe/Berlin"), FeatureGates()) == []
    assert planned(a_cron(), now=NOW + timedelta(days=400)).create is not None
