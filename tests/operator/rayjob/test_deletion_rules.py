"""What is deleted after a job's end: rules, the older pair of policies, and `shutdownAfterJobFinishes`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayClusterSpec
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob.facts import DeleteCluster, DeleteSelf, SuspendWorkers
from raykeeper.operator.rayjob.machine import step
from raykeeper.operator.settings import RayJobSettings
from support.rayjob_facts import CLUSTER_SPEC, NOW, a_cluster, a_job, ago, facts

DELETE_CLUSTER = DeleteCluster("counter-fghij", "cluster-uid")
SUSPEND_WORKERS = SuspendWorkers("counter-fghij")


def ended(state: str = "Complete", job_status: str = "SUCCEEDED", seconds_ago: float = 10, **spec: Any) -> RayJob:
    return a_job(state, {"jobStatus": job_status, "endTime": ago(seconds_ago)}, **spec)


def rules(*rows: tuple[str, JSON, int]) -> JSON:
    made = [{"policy": policy, "condition": {**when, "ttlSeconds": ttl}} for policy, when, ttl in rows]
    return {"deletionStrategy": {"deletionRules": made}}


def test_nothing_is_deleted_unless_asked_for() -> None:
    assert step(ended(), facts(), NOW).actions == ()


def test_a_cluster_goes_after_its_time() -> None:
    job = ended(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=30)
    waiting = step(job, facts(), NOW)
    assert (waiting.actions, waiting.look_at) == ((), NOW + timedelta(seconds=20))
    assert step(job, facts(), NOW + timedelta(seconds=20)).actions == (DELETE_CLUSTER,)
    assert step(job, facts(cluster=None), NOW + timedelta(seconds=20)).actions == ()
    itself = facts(settings=RayJobSettings(deletes_finished=True))
    assert step(job, itself, NOW + timedelta(seconds=20)).actions == (DeleteSelf(),)


def test_anothers_cluster_stays() -> None:
    job = ended(clusterSelector={"ray.io/cluster": "shared"}, **rules(("DeleteSelf", {"jobStatus": "SUCCEEDED"}, 0)))
    assert step(job, facts(cluster=a_cluster(is_owned=False)), NOW).actions == ()


STAGES = rules(
    ("DeleteWorkers", {"jobStatus": "FAILED"}, 10),
    ("DeleteCluster", {"jobStatus": "FAILED"}, 60),
    ("DeleteSelf", {"jobDeploymentStatus": "Failed"}, 600),
    ("DeleteCluster", {"jobStatus": "SUCCEEDED"}, 0),
)


def test_rules_are_carried_out_in_stages() -> None:
    job = ended("Failed", "FAILED", 0, **STAGES)
    assert step(job, facts(), NOW).look_at == NOW + timedelta(seconds=10)
    first = step(job, facts(), NOW + timedelta(seconds=10))
    assert (first.actions, first.look_at) == ((SUSPEND_WORKERS,), NOW + timedelta(seconds=60))
    groups = [group | {"suspend": True} for group in CLUSTER_SPEC["workerGroupSpecs"]]
    spec = msgspec.convert(CLUSTER_SPEC | {"workerGroupSpecs": groups}, RayClusterSpec)
    without_workers = replace(a_cluster(), spec=spec)
    assert step(job, facts(cluster=without_workers), NOW + timedelta(seconds=20)).actions == ()
    assert step(job, facts(cluster=without_workers), NOW + timedelta(seconds=60)).actions == (DELETE_CLUSTER,)
    assert step(job, facts(cluster=None), NOW + timedelta(seconds=100)).actions == ()
    assert step(job, facts(cluster=None), NOW + timedelta(seconds=600)).actions == (DeleteSelf(),)


@pytest.mark.parametrize("job_status", ["FAILED", ""])
def test_of_several_rules_that_are_due_the_one_that_deletes_most_is_taken(job_status: str) -> None:
    assert step(ended("Failed", job_status, 1000, **STAGES), facts(), NOW).actions == (DeleteSelf(),)


@pytest.mark.parametrize(
    ("rows", "forgotten"),
    [
        ([("DeleteCluster", {"jobStatus": "SUCCEEDED"}, 0)], "no rule for a job that fails:"),
        (
            [("DeleteCluster", {"jobStatus": "FAILED"}, 0)],
            "no rule for a job that succeeds nor for a job that fails bef",
        ),
        ([("DeleteNone", {"jobDeploymentStatus": "Failed"}, 0)], "no rule for a job that succeeds:"),
    ],
)
def test_an_end_that_rules_forget_is_warned_of_before_anything_is_made(rows: Any, forgotten: str) -> None:
    taken = step(a_job(**rules(*rows)), facts(cluster=None), NOW)
    assert [warning.reason for warning in taken.warnings] == ["UnmatchedDeletionRules"]
    assert forgotten in taken.warnings[0].message


BY_PAIR: JSON = {"deletionStrategy": {"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteNone"}}}


@pytest.mark.parametrize(
    ("state", "job_status", "spec", "is_told"),
    [
        ("Failed", "FAILED", rules(("DeleteCluster", {"jobStatus": "SUCCEEDED"}, 0)), True),
        ("Complete", "SUCCEEDED", rules(("DeleteCluster", {"jobStatus": "SUCCEEDED"}, 0)), False),
        ("Complete", "SUCCEEDED", rules(("DeleteNone", {"jobStatus": "SUCCEEDED"}, 0)), False),
        ("Complete", "STOPPED", STAGES, True),
        ("Complete", "STOPPED", BY_PAIR, True),
        ("Failed", "FAILED", BY_PAIR, False),
        ("Complete", "STOPPED", {}, False),
    ],
)
def test_a_cluster_that_stays_because_of_how_its_job_ended_is_told(
    state: str, job_status: str, spec: JSON, is_told: bool
) -> None:
    taken = step(ended(state, job_status, **spec), facts(), NOW)
    assert [warning.reason for warning in taken.warnings] == ["UnmatchedDeletionRules"] * is_told
    assert step(ended(state, job_status, **spec), facts(cluster=None), NOW).warnings == (), "there is none left"


def test_rules_for_every_end_are_not_warned_of() -> None:
    assert step(a_job(**STAGES), facts(cluster=None), NOW).warnings == ()
    assert step(ended(**STAGES), facts(), NOW).warnings == ()


@pytest.mark.parametrize(
    ("state", "job_status", "actions"),
    [
        ("Complete", "SUCCEEDED", (SUSPEND_WORKERS,)),
        ("Failed", "FAILED", (DELETE_CLUSTER,)),
        ("Failed", "", (DELETE_CLUSTER,)),
        ("Complete", "STOPPED", ()),
    ],
)
def test_the_older_policies_are_chosen_by_how_the_job_ended(state: str, job_status: str, actions: Any) -> None:
    strategy = {"onSuccess": {"policy": "DeleteWorkers"}, "onFailure": {"policy": "DeleteCluster"}}
    assert step(ended(state, job_status, deletionStrategy=strategy), facts(), NOW).actions == actions
