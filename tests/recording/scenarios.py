"""Every failure that is recorded: what happens in the cluster, and which variables its Ray needs for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import psutil

from recording.lives import JOB, RecordedLife
from support.planted_secrets import LINES

GIB = 1 << 30
MISSING = "file:///releases/7/app.zip"
"""A working directory that nobody uploaded."""


@dataclass(frozen=True)
class Scenario:
    """Something that happens to a cluster; its head is up and its store empty when `happen` is called."""

    name: str
    happen: Callable[[RecordedLife], None]
    environment: Callable[[], Mapping[str, str]] = field(default=dict)
    needs_worker: bool = False


def _job(program: str, status: str, **submission: object) -> Callable[[RecordedLife], None]:
    """A job that ends so by itself."""

    def happen(life: RecordedLife) -> None:
        life.submit(program, **submission)  # type: ignore[arg-type]  # passed on by name
        life.wait_for_job(status)

    return happen


def _stopped_job(life: RecordedLife) -> None:
    life.submit("long_work")
    life.wait_for_output("epoch", times=2)
    life.cluster.stop_job(JOB)
    life.wait_for_job("STOPPED")


def _lost_node(life: RecordedLife) -> None:
    life.submit("lost_node")
    life.wait_for_output("simulation", times=3)
    life.wait_until_stored("RUNNING")
    life.lose(1)
    life.wait_for_job("FAILED")


def _killed_head(life: RecordedLife) -> None:
    life.submit("long_work")
    life.wait_for_output("epoch", times=2)
    life.wait_until_stored("train_epoch")
    life.wait_until_stored('"RUNNING"')
    life.lose(0)


def _little_memory() -> Mapping[str, str]:
    """A limit just above what the machine uses now."""
    memory = psutil.virtual_memory()
    share = (memory.total - memory.available + 2 * GIB) / memory.total
    return {"RAY_memory_usage_threshold": f"{share:.3f}", "RAY_memory_monitor_refresh_ms": "100"}


SCENARIOS = (
    Scenario("went-well", _job("went_well", "SUCCEEDED")),
    Scenario("one-of-many", _job("one_of_many", "FAILED")),
    Scenario("failed-dependency", _job("failed_dependency", "FAILED")),
    Scenario("out-of-memory", _job("out_of_memory", "FAILED"), _little_memory),
    Scenario("lost-node", _lost_node, needs_worker=True),
    Scenario("killed-head", _killed_head),
    Scenario("failing-constructor", _job("failing_constructor", "FAILED")),
    Scenario("exhausted-restarts", _job("exhausted_restarts", "FAILED")),
    Scenario("bad-job-environment", _job("went_well", "FAILED", runtime_env={"working_dir": MISSING})),
    Scenario("bad-task-environment", _job("bad_task_environment", "FAILED")),
    Scenario("unschedulable", _job("unschedulable", "FAILED")),
    Scenario("cancelled-tasks", _job("cancelled_tasks", "FAILED")),
    Scenario("stopped-job", _stopped_job),
    Scenario("job-timeout", _job("long_work", "FAILED", before="timeout 15 ")),
    Scenario("named-trainer", _job("named_trainer", "FAILED")),
    Scenario("too-many-failed", _job("too_many_failed", "FAILED")),
    Scenario("quiet-deaths", _job("quiet_deaths", "SUCCEEDED")),
    Scenario("intended-ends", _job("intended_ends", "SUCCEEDED")),
    Scenario("data-bad-record", _job("data_bad_record", "FAILED")),
    Scenario("data-bad-model", _job("data_bad_model", "FAILED")),
    Scenario("train-diverged", _job("train_diverged", "FAILED")),
    Scenario("train-killed-worker", _job("train_killed_worker", "FAILED")),
    Scenario("tune-exploding-trials", _job("tune_exploding_trials", "SUCCEEDED")),
    Scenario("serve-crashing-replica", _job("serve_crashing_replica", "SUCCEEDED")),
    Scenario("serve-bad-model", _job("serve_bad_model", "FAILED")),
    Scenario("serve-failing-requests", _job("serve_failing_requests", "SUCCEEDED")),
    Scenario("serve-went-well", _job("serve_went_well", "SUCCEEDED")),
    Scenario(
        "careless-secrets",
        _job("careless_secrets", "FAILED", runtime_env={"env_vars": {"PLANTED": json.dumps(LINES)} | LINES}),
    ),
)
