"""Jobs that are given to a cluster that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from raykeeper.client.python_apiserver_client.params.wire import Parameters, either, values_to_string, wire


def _is_positive(number: float) -> bool:
    return number > 0


@dataclass
class RayJobRequest(Parameters):
    """A job to be submitted; `runtime_env` is YAML."""

    entrypoint: str = wire("entrypoint")
    submission_id: str | None = wire("submissionId", default=None)
    runtime_env: str | None = wire("runtimeEnv", default=None)
    metadata: dict[str, str] | None = wire("metadata", default=None)
    num_cpu: float = wire("entrypointNumCpus", default=-1.0, absent=-1.0, is_sent=_is_positive)
    num_gpu: float = wire("entrypointNumGpus", default=-1.0, absent=-1.0, is_sent=_is_positive)
    resources: dict[str, str] | None = wire("entrypointResources", default=None)


class RayJobInfo:
    """A job as a server answered it; times are milliseconds since 1970, zero for none."""

    def __init__(self, dct: Mapping[str, Any]) -> None:
        self.entrypoint = either(dct, "entrypoint", "")
        self.job_id = either(dct, "jobId", "")
        self.submission_id = either(dct, "submissionId", "")
        self.status = either(dct, "status", "")
        self.message = either(dct, "message")
        self.start_time = int(either(dct, "startTime", 0))
        self.end_time = int(either(dct, "endTime", 0))
        self.error_type = either(dct, "errorType")
        self.metadata = either(dct, "metadata")
        self.runtime_env = either(dct, "runtimeEnv")

    def to_string(self) -> str:
        """Itself for people: every value that is set, times in UTC."""
        times = {"start_time": _moment(self.start_time), "end_time": _moment(self.end_time)}
        return values_to_string({name: value for name, value in {**vars(self), **times}.items() if value})


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if milliseconds else ""
