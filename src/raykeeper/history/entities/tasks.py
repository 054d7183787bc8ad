"""An attempt of a task in Ray's spelling. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from raykeeper.history.entities.job import CLUSTER_ENDED
from raykeeper.history.entities.ray_json import protobuf_json, task_time_ms
from raykeeper.history.ingest.tables import state_column
from raykeeper.history.query.context import Row
from raykeeper.masking import Masked, masked, of_our_own
from raykeeper.rayevents.states import TASK_STATES

QUESTIONS = ("_StatsActor.get_datasets", "TrainStateActor.get_train_runs", "TrainStateActor.get_train_run_attempts")
"""Calls by which Ray's dashboard answers for Data and Train, when the collector asks it or somebody looks at a page."""

_NAMES = ", ".join(f"'{name}'" for name in QUESTIONS)
IS_USERS = f"type <> 'DRIVER_TASK' AND coalesce(name, '') NOT IN ({_NAMES})"
"""Over `task_summary`: a driver is no task to its user, and neither are questions."""
IN_SCOPE = f"{IS_USERS} AND has_definition AND ($job_id::VARCHAR IS NULL OR job_id = $job_id)"
"""Over `task_list` and `unfinished_tasks`: those of one job, or of all."""


LISTED_COLUMNS = (
    "task_id",
    "attempt_number",
    "name",
    "state",
    "job_id",
    "actor_id",
    "type",
    "func_or_class_name",
    "parent_task_id",
    "node_id",
    "worker_id",
    "worker_pid",
    "error_type",
)
_STATE_COLUMNS = tuple((state, state_column(state)) for state in TASK_STATES)
_LOG_COLUMNS = ("stdout_file", "stderr_file", "stdout_start", "stdout_end", "stderr_start", "stderr_end")
_ANSI_CODE = re.compile(r"\x1b[^m]*m")
_NOTHING = msgspec.Raw(b"{}")
_NO_FALLBACK = msgspec.Raw(b'{"options":[]}')
_SETUP_TIMEOUT_SECONDS = 600  # Ray's default for building a runtime environment


def _listed_task(row: Row) -> dict[str, Any]:
    """The columns of a plain list."""
    task = {name: row[name] for name in LISTED_COLUMNS}
    task["worker_pid"] = row["worker_pid"] or None
    return task


def _detailed_task(row: Row) -> dict[str, Any]:
    """All columns."""
    return {
        **_listed_task(row),
        "language": row["language"],
        "required_resources": _json(row["required_resources"]),
        "runtime_env_info": runtime_env_info(row["serialized_runtime_env"]),
        "placement_group_id": row["placement_group_id"],
        "events": _state_events(row),
        "profiling_data": profiling_data(row),
        "creation_time_ms": task_time_ms(row["creation_ns"]),
        "start_time_ms": task_time_ms(row["start_ns"]),
        "end_time_ms": task_time_ms(_end_ns(row)),
        "task_log_info": _log_info(row),
        "error_message": CLUSTER_ENDED if row["closed_by"] == "cluster" else _plain(row["error_message"]),
        "is_debugger_paused": None,
        "call_site": row["call_site"] or None,
        "label_selector": _json(row["label_selector"]),
        "fallback_strategy": _fallback_strategy(row),
    }


def encoded_listed_task(row: Row) -> Masked:
    """The columns of a plain list, as JSON."""
    return masked(_listed_task(row))


def encoded_detailed_task(row: Row) -> Masked:
    """All columns, as JSON."""
    return masked(_detailed_task(row))


def _state_events(row: Row) -> Masked:
    """One entry for each state the attempt was in, in Ray's order; the time is cut to milliseconds.

    States are words of ours and times are numbers, so there is nothing to look through for secrets.
    """
    times = {state: row[column] for state, column in _STATE_COLUMNS if row[column] is not None}
    if row["state"] == "FAILED" and "FAILED" not in times:
        times["FAILED"] = row["end_ns"]  # its worker or job ended without a word
    events = [{"state": state, "created_ms": task_time_ms(times[state])} for state in TASK_STATES if state in times]
    return of_our_own(msgspec.json.encode(events))


def _end_ns(row: Row) -> int | None:
    """What a task did not end, its cluster's end did."""
    ended: int | None = row["closed_ns"] if row["closed_by"] == "cluster" else row["end_ns"]
    return ended


def profiling_data(row: Row) -> dict[str, Any]:
    """Spans that the worker measured; times in milliseconds with fractions."""
    if row["spans_json"] in (None, "[]"):
        return {}
    return {
        "component_type": row["component_type"],
        "component_id": row["component_id"],
        "node_ip_address": row["component_ip"],
        "events": _spans(row["spans_json"], row["task_id"]),
    }


def _spans(text: str, task_id: str) -> Masked | msgspec.Raw:
    """Ray's own spans name the task and nothing else, nearly always: they are not looked through for secrets."""
    usual = text.count('"extra_data":{}') + text.count(f'"task_id":"{task_id}"}}')
    return Masked(_json(text)) if usual == text.count('"extra_data":') else _json(text)


@lru_cache(1024)
def runtime_env_info(text: str | None) -> Masked:
    """What Ray makes of a task's runtime environment; a session has few different ones."""
    if not text:
        return masked({"serialized_runtime_env": ""})
    environment = _environment(text)
    uris = {"working_dir_uri": environment.get("working_dir", ""), "py_modules_uris": environment.get("py_modules", [])}
    known_uris = {"uris": uris} if any(uris.values()) else {}
    config = environment.get("config")
    defaults = {"setup_timeout_seconds": _SETUP_TIMEOUT_SECONDS, "eager_install": True, "log_files": []}
    info = {
        "serialized_runtime_env": text,
        **known_uris,
        "runtime_env_config": {**defaults, **(config if isinstance(config, dict) else {})},
    }
    return masked(info)


def _environment(text: str) -> Mapping[str, Any]:
    try:
        environment = json.loads(text)
    except ValueError:
        return {}
    return environment if isinstance(environment, dict) else {}


def _fallback_strategy(row: Row) -> msgspec.Raw | None:
    if row["fallback_strategy"] is None:
        return None if row["type"] == "DRIVER_TASK" else _NO_FALLBACK
    return msgspec.Raw(msgspec.json.encode(protobuf_json(row["fallback_strategy"])))


def _log_info(row: Row) -> dict[str, Any] | None:
    return {name: row[name] for name in _LOG_COLUMNS if row[name] is not None} or None


def _json(text: str | None) -> msgspec.Raw:
    """Stored JSON, passed on as it is."""
    return msgspec.Raw(text.encode()) if text else _NOTHING


def _plain(text: str | None) -> str | None:
    """Without the colours that a console would show."""
    return None if text is None else _ANSI_CODE.sub("", text)
