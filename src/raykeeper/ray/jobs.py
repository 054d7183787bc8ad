"""Ray's job API: what a submitted job is doing, and how one is submitted, stopped and deleted."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.errors import Unavailable
from raykeeper.ray.dashboard import Answer
from raykeeper.ray.heads import Head, raise_for
from raykeeper.rayevents.states import ENDED_JOBS, JobStatus

ALREADY_SUBMITTED: Final = "different submission_id"
"""Ray answers 500 with a hint of these words where the id is taken."""
MESSAGE_CHARACTERS: Final = 16_000
"""Of a job's message; it goes into the status of an object, whose size is bounded."""


class JobInfo(msgspec.Struct, frozen=True):
    """What Ray says about a submitted job. Equal where nothing changed that anybody looks at."""

    submission_id: str
    status: JobStatus
    message: str = ""
    start_time: int | None = None
    """Milliseconds since 1970."""
    end_time: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED_JOBS


class JobSubmission(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job to be submitted, in Ray's words."""

    entrypoint: str
    submission_id: str
    runtime_env: JSON = msgspec.field(default_factory=dict)
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    entrypoint_num_cpus: float = 0.0
    entrypoint_num_gpus: float = 0.0
    entrypoint_resources: dict[str, float] = msgspec.field(default_factory=dict)


class _Wire(msgspec.Struct):
    """As Ray sends it; `submission_id` is null for drivers that nobody submitted."""

    status: JobStatus
    submission_id: str | None = None
    message: str | None = None
    start_time: int | None = None
    end_time: int | None = None


class _Stopped(msgspec.Struct):
    stopped: bool = False


async def job_info(head: Head, submission_id: str) -> JobInfo | None:
    """What the job is doing; None where the head knows no such job.

    An error of the head's, also one with JSON in it, is `Unavailable`: it says nothing about the job.
    """
    answer = await head.get(_path(submission_id))
    if answer.status == 404:
        return None
    raise_for(head, f"job {submission_id}", answer)
    wire: _Wire = _decoded(head, answer, _Wire)
    message = (wire.message or "")[:MESSAGE_CHARACTERS]
    return JobInfo(wire.submission_id or submission_id, wire.status, message, wire.start_time, wire.end_time)


async def submit_job(head: Head, submission: JobSubmission) -> None:
    """Have the job run. One that was submitted under this id before is left as it is, and that is a success: a
    submission nobody answered is simply sent again. Raises `HeadRefused` where Ray does not want it.
    """
    body = msgspec.json.encode(submission)
    answer = await head.send("POST", "/api/jobs/", body)
    if answer.status >= 400 and ALREADY_SUBMITTED in answer.body.decode(errors="replace"):
        return
    raise_for(head, f"submission of job {submission.submission_id}", answer)


async def stop_job(head: Head, submission_id: str) -> None:
    """Have the job end; one that has ended, or that the head does not know, is no error."""
    answer = await head.send("POST", f"{_path(submission_id)}/stop")
    if answer.status == 404:
        return
    raise_for(head, f"stop of job {submission_id}", answer)
    stopped: _Stopped = _decoded(head, answer, _Stopped)
    if stopped.stopped:
        return
    info = await job_info(head, submission_id)
    if info is not None and not info.has_ended:
        raise Unavailable(head.service, f"job {submission_id} was not stopped and is {info.status}")


async def delete_job(head: Head, submission_id: str) -> None:
    """Have the head forget a job that has ended; one it does not know is no error."""
    answer = await head.send("DELETE", _path(submission_id))
    if answer.status != 404:
        raise_for(head, f"deletion of job {submission_id}", answer)


def _path(submission_id: str) -> str:
    return f"/api/jobs/{quote(submission_id, safe='')}"


def _decoded(head: Head, answer: Answer, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.DecodeError as exc:
        raise Unavailable(head.service, f"what it says about a job cannot be read ({exc})") from exc
