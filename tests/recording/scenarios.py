"""Every failure that is recorded: what happens in the cluster, and which variables its Ray needs for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import psutil

from bed.rayenv import RAY_VERSION
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
    version: str = RAY_VERSION


def _job(program: str, status: str, **submission: object) -> Callable[[RecordedLife], None]:
    """A job that ends so by itself."""

    def happen(life: RecordedLife) -> None:
        life.submit(program, **submission)  # type: ignore[arg-type]  # passed on by name
        life.wait_for_job(status)

    return happen


def _command(command: str, status: str) -> Callable[[RecordedLife], None]:
    """A job whose entrypoint is no program of ours."""

    def happen(life: RecordedLife) -> None:
        life.cluster.submit(JOB, command)
        life.wait_for_job(status)

    return happen


def _by_hand(program: str) -> Callable[[RecordedLife], None]:
    """A driver that nobody submitted: Ray keeps neither its output nor how it ended."""
    return lambda life: life.run_by_hand(program)


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


def _idle_train(life: RecordedLife) -> None:
    life.submit("train_no_gpus", before="timeout 45 ")
    life.wait_for_job("FAILED")


RAY_252 = "2.52.0"

_CORE = (
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
    Scenario("nested-queries", _job("nested_queries", "FAILED")),
    Scenario("missing-module", _job("missing_module", "FAILED")),
    Scenario("missing-command", _command("nosuchcommand --all", "FAILED")),
    Scenario("fan-out", _job("fan_out", "FAILED")),
    Scenario("missing-gpu", _job("missing_gpu", "FAILED")),
    Scenario("all-good", _job("all_good", "SUCCEEDED")),
    Scenario("demo-job", _job("failing_job", "FAILED")),
    Scenario("async-gateway", _job("async_gateway", "FAILED")),
    Scenario("native-crash", _job("native_crash", "FAILED")),
    Scenario("unpicklable", _job("unpicklable", "FAILED")),
    Scenario("bad-totals", _job("bad_totals", "FAILED")),
    Scenario("gives-up", _job("gives_up", "FAILED")),
    Scenario("poison-message", _job("poison_message", "FAILED")),
    Scenario("streaming-rows", _job("streaming_rows", "FAILED")),
    Scenario("wrapped-errors", _job("wrapped_errors", "FAILED")),
    Scenario("dead-owner", _job("dead_owner", "FAILED")),
    Scenario("full-cluster", _job("full_cluster", "FAILED")),
    Scenario("missing-bundle", _job("missing_bundle", "FAILED")),
    Scenario("killed-driver", _job("killed_driver", "FAILED")),
    Scenario("exiting-actor", _job("exiting_actor", "FAILED")),
    Scenario("tensor-parallel", _job("tensor_parallel", "FAILED")),
    Scenario("token-stream", _job("token_stream", "FAILED")),
    Scenario("by-hand", _by_hand("failed_dependency")),
    Scenario(
        "careless-secrets",
        _job("careless_secrets", "FAILED", runtime_env={"env_vars": {"PLANTED": json.dumps(LINES)} | LINES}),
    ),
)
_LIBRARIES = (
    Scenario("data-bad-record", _job("data_bad_record", "FAILED")),
    Scenario("data-bad-model", _job("data_bad_model", "FAILED")),
    Scenario("data-missing-file", _job("data_missing_file", "FAILED")),
    Scenario("data-wrong-column", _job("data_wrong_column", "FAILED")),
    Scenario("data-dying-mapper", _job("data_dying_mapper", "FAILED")),
    Scenario("data-read-only", _job("data_read_only", "FAILED")),
    Scenario("data-bad-group", _job("data_bad_group", "FAILED")),
    Scenario("data-skipped-rows", _job("data_skipped_rows", "SUCCEEDED")),
    Scenario("data-custom-source", _job("data_custom_source", "FAILED")),
    Scenario("data-for-training", _job("data_for_training", "FAILED")),
    Scenario("data-by-hand", _by_hand("data_bad_record")),
    Scenario("train-by-hand", _by_hand("train_diverged")),
    Scenario("train-diverged", _job("train_diverged", "FAILED")),
    Scenario("train-killed-worker", _job("train_killed_worker", "FAILED")),
    Scenario("train-torch-shapes", _job("torch_shapes", "FAILED")),
    Scenario("train-no-gpus", _idle_train),
    Scenario("train-full-disk", _job("train_full_disk", "FAILED")),
    Scenario("train-recovers", _job("train_recovers", "SUCCEEDED")),
    Scenario("tune-exploding-trials", _job("tune_exploding_trials", "SUCCEEDED")),
    Scenario("tune-all-fail", _job("tune_all_fail", "FAILED")),
    Scenario("tune-bad-setup", _job("tune_bad_setup", "FAILED")),
    Scenario("tune-dying-trial", _job("tune_dying_trial", "SUCCEEDED")),
    Scenario("tune-fail-fast", _job("tune_fail_fast", "FAILED")),
    Scenario("serve-crashing-replica", _job("serve_crashing_replica", "SUCCEEDED")),
    Scenario("serve-bad-model", _job("serve_bad_model", "FAILED")),
    Scenario("serve-failing-requests", _job("serve_failing_requests", "SUCCEEDED")),
    Scenario("serve-went-well", _job("serve_went_well", "SUCCEEDED")),
    Scenario("serve-live", _job("serve_live", "SUCCEEDED")),
    Scenario("serve-pipeline", _job("serve_pipeline", "SUCCEEDED")),
    Scenario("serve-unhealthy", _job("serve_unhealthy", "SUCCEEDED")),
    Scenario("serve-bad-import", _job("serve_bad_import", "FAILED")),
    Scenario("rllib-bad-env", _job("rllib_bad_env", "FAILED")),
    Scenario("rllib-dying-runner", _job("rllib_dying_runner", "FAILED")),
)
_AFTERWARDS = (
    Scenario("package-steps", _job("package_steps", "FAILED")),
    Scenario("bare-raise", _job("bare_raise", "FAILED")),
    Scenario("task-group", _job("task_group", "FAILED")),
    Scenario("silent-kill", _job("silent_kill", "FAILED")),
    Scenario("custom-resource", _job("custom_resource", "FAILED")),
    Scenario("healed-crash", _job("healed_crash", "SUCCEEDED")),
    Scenario("logged-and-left", _job("logged_and_left", "FAILED")),
    Scenario("bad-settings", _job("bad_settings", "FAILED")),
    Scenario("pool-map", _job("pool_map", "FAILED")),
    Scenario("data-arrow-types", _job("data_arrow_types", "FAILED")),
    Scenario("data-bad-weights", _job("data_bad_weights", "FAILED")),
    Scenario("train-data-loader", _job("train_data_loader", "FAILED")),
    Scenario("tune-late-failure", _job("tune_late_failure", "SUCCEEDED")),
    Scenario("serve-fastapi", _job("serve_fastapi", "SUCCEEDED")),
    Scenario("serve-batched", _job("serve_batched", "SUCCEEDED")),
    Scenario("rllib-bad-config", _job("rllib_bad_config", "FAILED")),
)
"""Written when the rules had been made for all of the above, to see whether those hold for others."""

_ELSE = (
    Scenario("unreadable-error", _job("unreadable_error", "FAILED")),
    Scenario("hung-task", _job("hung_task", "FAILED")),
    Scenario("broken-plugin", _job("broken_plugin", "FAILED")),
    Scenario("wrong-arguments", _job("wrong_arguments", "FAILED")),
    Scenario("missing-script", _command("python /app/train.py --epochs 3", "FAILED")),
    Scenario("shell-steps", _command("set -e; echo preparing; ls /data/2026-11-16; python -m nightly", "FAILED")),
    Scenario("foreign-module", _job("foreign_module", "FAILED")),
    Scenario("unpicklable-result", _job("unpicklable_result", "FAILED")),
    Scenario("asyncio-driver", _job("asyncio_driver", "FAILED")),
    Scenario("failing-tool", _job("failing_tool", "FAILED")),
    Scenario("missing-actor", _job("missing_actor", "FAILED")),
    Scenario("greedy-actor", _job("greedy_actor", "FAILED"), _little_memory),
    Scenario("engine-core", _job("engine_core", "FAILED")),
    Scenario("data-bad-file", _job("data_bad_file", "FAILED")),
    Scenario("data-wrong-return", _job("data_wrong_return", "FAILED")),
    Scenario("data-bad-json", _job("data_bad_json", "FAILED")),
    Scenario("data-collate", _job("data_collate", "FAILED")),
    Scenario("data-unsorted", _job("data_unsorted", "FAILED")),
    Scenario("train-v1", _job("train_v1", "FAILED")),
    Scenario("train-bad-shard", _job("train_bad_shard", "FAILED")),
    Scenario("train-gives-up", _job("train_gives_up", "FAILED")),
    Scenario("tune-missing-metric", _job("tune_missing_metric", "FAILED")),
    Scenario("tune-classic", _job("tune_classic", "FAILED")),
    Scenario("serve-no-gpu", _job("serve_no_gpu", "FAILED", before="timeout 50 ")),
    Scenario("serve-handle", _job("serve_handle", "FAILED")),
    Scenario("serve-refusing", _job("serve_refusing", "SUCCEEDED")),
    Scenario("rllib-tuned", _job("rllib_tuned", "FAILED")),
    Scenario("rllib-unknown-env", _job("rllib_unknown_env", "FAILED")),
)
"""Written when all of the above had been written, to see what else people do."""

_ALSO_252 = (
    *("one-of-many", "nested-queries", "named-trainer", "native-crash", "fan-out"),
    *("data-bad-record", "data-dying-mapper", "train-diverged", "train-killed-worker"),
    *("tune-all-fail", "tune-dying-trial", "serve-live", "serve-bad-model", "rllib-bad-env"),
)
"""Recorded with an older Ray too: it sends no events about workers, and no ranges of logs."""

_LATEST = (*_CORE, *_LIBRARIES, *_AFTERWARDS, *_ELSE)
SCENARIOS = (
    *_LATEST,
    *(replace(one, name=f"{one.name}-ray252", version=RAY_252) for one in _LATEST if one.name in _ALSO_252),
)
