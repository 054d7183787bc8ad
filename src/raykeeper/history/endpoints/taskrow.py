"""An attempt of a task in Ray's spelling. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from raykeeper.history.asked import Row
from raykeeper.history.endpoints.ended import CLUSTER_ENDED
from raykeeper.history.endpoints.rayjson import protobuf_json
from raykeeper.history.endpoints.redaction import masked_deeply, masked_environment_text
from raykeeper.history.secretpatterns import masked_text
from raykeeper.history.tables import TASK_STATES, state_column

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
_NS_PER_MS = 1_000_000
_encoder = msgspec.json.Encoder()
_NOTHING = msgspec.Raw(b"{}")
_NO_FALLBACK = msgspec.Raw(b'{"options":[]}')
_SETUP_TIMEOUT_SECONDS = 600  # Ray's default for building a runtime environment


def listed_task(row: Row) -> dict[str, Any]:
    """The columns of a plain list."""
    task = {name: row[name] for name in LISTED_COLUMNS}
    task["worker_pid"] = row["worker_pid"] or None
    return task


def detailed_task(row: Row) -> dict[str, Any]:
    """All columns."""
    return {
        **listed_task(row),
        "language": row["language"],
        "required_resources": _json(row["required_resources"]),
        "runtime_env_info": runtime_env_info(row["serialized_runtime_env"]),
        "placement_group_id": row["placement_group_id"],
        "events": state_events(row),
        "profiling_data": profiling_data(row),
        "creation_time_ms": _ms(row["creation_ns"]),
        "start_time_ms": _ms(row["start_ns"]),
        "end_time_ms": _ms(_end_ns(row)),
        "task_log_info": _log_info(row),
        "error_message": CLUSTER_ENDED if row["closed_by"] == "cluster" else _plain(row["error_message"]),
        "is_debugger_paused": None,
        "call_site": row["call_site"] or None,
        "label_selector": _json(row["label_selector"]),
        "fallback_strategy": _fallback_strategy(row),
    }


def encoded_listed_task(row: Row) -> msgspec.Raw:
    """The columns of a plain list, as JSON."""
    return msgspec.Raw(_encoder.encode(listed_task(row)))


def encoded_detailed_task(row: Row) -> msgspec.Raw:
    """All columns, as JSON."""
    return msgspec.Raw(_encoder.encode(detailed_task(row)))


def state_events(row: Row) -> list[dict[str, Any]]:
    """One entry for each state the attempt was in, in Ray's order; the time is cut to milliseconds."""
    times = {state: row[column] for state, column in _STATE_COLUMNS if row[column] is not None}
    if row["state"] == "FAILED" and "FAILED" not in times:
        times["FAILED"] = row["end_ns"]  # its worker or job ended without a word
    return [{"state": state, "created_ms": _ms(times[state])} for state in TASK_STATES if state in times]


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


def _spans(text: str, task_id: str) -> msgspec.Raw:
    """Spans hold the exception that ended them, and whatever a program measured with `ray.profiling` itself."""
    usual = text.count('"extra_data":{}') + text.count(f'"task_id":"{task_id}"}}')
    if usual == text.count('"extra_data":') or masked_text(text) == text:
        return _json(text)  # nearly always: Ray's own spans name the task and nothing else
    return msgspec.Raw(msgspec.json.encode(masked_deeply(msgspec.json.decode(text))))


@lru_cache(1024)
def runtime_env_info(text: str | None) -> msgspec.Raw:
    """What Ray makes of a task's runtime environment; a session has few different ones."""
    if not text:
        return msgspec.Raw(b'{"serialized_runtime_env":""}')
    environment = _environment(text)
    uris = {"working_dir_uri": environment.get("working_dir", ""), "py_modules_uris": environment.get("py_modules", [])}
    known_uris = {"uris": uris} if any(uris.values()) else {}
    config = environment.get("config")
    defaults = {"setup_timeout_seconds": _SETUP_TIMEOUT_SECONDS, "eager_install": True, "log_files": []}
    info = {
        "serialized_runtime_env": masked_environment_text(text),
        **known_uris,
        "runtime_env_config": {**defaults, **(config if isinstance(config, dict) else {})},
    }
    return msgspec.Raw(msgspec.json.encode(info))


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
    """Without secrets, and without the colours that a console would show."""
    return None if text is None else masked_text(_ANSI_CODE.sub("", text))


def _ms(ns: int | None) -> int | None:
    return None if ns is None else ns // _NS_PER_MS
