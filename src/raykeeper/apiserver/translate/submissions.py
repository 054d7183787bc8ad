"""Jobs that are submitted to a head directly, in the words of Ray's job API and back."""

from __future__ import annotations

import math
from typing import Any

from raykeeper.api.yaml_text import parse_mapping
from raykeeper.apiserver.errors import Untranslatable
from raykeeper.apiserver.protos.job_submission_pb2 import JobSubmissionInfo, RayJobSubmission
from raykeeper.ray.jobs import JobDetails, JobSubmission

_MOST = 2**64 - 1


def to_submission(job: RayJobSubmission) -> JobSubmission:
    """What Ray is asked for. Raises `Untranslatable`."""
    try:
        runtime_env = parse_mapping(job.runtime_env)
    except ValueError as exc:
        raise Untranslatable(f"runtime_env: {' '.join(str(exc).split())}") from exc
    return JobSubmission(
        entrypoint=job.entrypoint,
        submission_id=job.submission_id,
        runtime_env=runtime_env,
        metadata=dict(job.metadata),
        entrypoint_num_cpus=max(job.entrypoint_num_cpus, 0.0),
        entrypoint_num_gpus=max(job.entrypoint_num_gpus, 0.0),
        entrypoint_resources={name: _number(text) for name, text in job.entrypoint_resources.items()},
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Untranslatable(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    return number


def from_details(details: JobDetails) -> JobSubmissionInfo:
    return JobSubmissionInfo(
        entrypoint=details.entrypoint,
        job_id=details.job_id,
        submission_id=details.submission_id,
        status=details.status,
        message=details.message,
        error_type=details.error_type,
        start_time=_moment(details.start_time),
        end_time=_moment(details.end_time),
        metadata=details.metadata,
        runtime_env={name: go_text(value) for name, value in (details.runtime_env or {}).items()},
    )


def _moment(milliseconds: int | None) -> int:
    return min(max(milliseconds or 0, 0), _MOST)


def go_text(value: Any) -> str:
    """A JSON value as Go's `%v` prints it, which is how KubeRay shows a runtime environment."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_text(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)
