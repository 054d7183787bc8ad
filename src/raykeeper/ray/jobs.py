"""Ray's job API: what a submitted job is doing, and how one is submitted, stopped and deleted."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.errors import Unavailable
from raykeeper.ray.errors import SubmissionIdTaken
from raykeeper.ray.heads import Head, decode_answer, raise_for
from raykeeper.rayevents.states import ENDED_JOBS, JobStatus
from raykeeper.times import from_ms

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
    submission_id: str = ""
    runtime_env: JSON = msgspec.field(default_factory=dict)
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    entrypoint_num_cpus: float = 0.0
    entrypoint_num_gpus: float = 0.0
    entrypoint_resources: dict[str, float] = msgspec.field(default_factory=dict)


class JobDetails(msgspec.Struct, frozen=True):
    """Everything that Ray's job API says about a job, whether it was submitted or a driver that somebody started."""

    entrypoint: str | None = None
    job_id: str | None = None
    submission_id: str | None = None
    status: str | None = None
    message: str | None = None
    error_type: str | None = None
    start_time: int | None = None
    """Milliseconds since 1970."""
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: JSON | None = None


class _Wire(msgspec.Struct):
    """As Ray sends it; `submission_id` is null for drivers that nobody submitted."""

    status: JobStatus
    submission_id: str | None = None
    message: str | None = None
    start_time: int | None = None
    end_time: int | None = None


class _Stopped(msgspec.Struct):
    stopped: bool = False


class _Submitted(msgspec.Struct):
    submission_id: str | None = None
    job_id: str | None = None


class _Logs(msgspec.Struct):
    logs: str = ""


async def job_info(head: Head, submission_id: str) -> JobInfo | None:
    """What the job is doing; None where the head knows no such job.

    An error of the head's, also one with JSON in it, is `Unavailable`: it says nothing about the job.
    """
    answer = await head.get(_path(submission_id))
    if answer.status == 404:
        return None
    raise_for(head, f"job {submission_id}", answer)
    wire = decode_answer(head, "a job", answer, _Wire)
    message = (wire.message or "")[:MESSAGE_CHARACTERS]
    started, ended = (ms if from_ms(ms) is not None else None for ms in (wire.start_time, wire.end_time))
    return JobInfo(wire.submission_id or submission_id, wire.status, message, started, ended)


async def submit_job(head: Head, submission: JobSubmission) -> None:
    """Have the job run. One that was submitted under this id before is left as it is, and that is a success: a
    submission nobody answered is simply sent again. Raises `HeadRefused` where Ray does not want it.
    """
    body = msgspec.json.encode(submission)
    answer = await head.send("POST", "/api/jobs/", body)
    if answer.status >= 400 and ALREADY_SUBMITTED in answer.body.decode(errors="replace"):
        return
    raise_for(head, f"submission of job {submission.submission_id}", answer)


async def submit_new_job(head: Head, submission: JobSubmission) -> str:
    """Have the job run, and return its submission id, which Ray makes where none is given.

    Raises `SubmissionIdTaken`, and `HeadRefused` where Ray does not want it.
    """
    answer = await head.send("POST", "/api/jobs/", msgspec.json.encode(submission))
    if answer.status >= 400 and ALREADY_SUBMITTED in answer.body.decode(errors="replace"):
        raise SubmissionIdTaken(submission.submission_id)
    raise_for(head, "submission of a job", answer)
    submitted = decode_answer(head, "a job", answer, _Submitted)
    return submitted.submission_id or submitted.job_id or submission.submission_id


async def job_details(head: Head, submission_id: str) -> JobDetails | None:
    """All that Ray says about a job; None where the head knows no such job."""
    answer = await head.get(_path(submission_id))
    if answer.status == 404:
        return None
    raise_for(head, f"job {submission_id}", answer)
    return decode_answer(head, "a job", answer, JobDetails)


async def list_jobs(head: Head) -> list[JobDetails]:
    """All jobs that the head knows."""
    answer = await head.get("/api/jobs/")
    raise_for(head, "list of jobs", answer)
    return decode_answer(head, "its jobs", answer, list[JobDetails])


async def whole_log(head: Head, submission_id: str) -> str | None:
    """What the job has printed until now; None where the head knows no such job."""
    answer = await head.get(f"{_path(submission_id)}/logs")
    if answer.status == 404:
        return None
    raise_for(head, f"log of job {submission_id}", answer)
    return decode_answer(head, "a job", answer, _Logs).logs


async def stop_job(head: Head, submission_id: str) -> None:
    """Have the job end; one that has ended, or that the head does not know, is no error."""
    answer = await head.send("POST", f"{_path(submission_id)}/stop")
    if answer.status == 404:
        return
    raise_for(head, f"stop of job {submission_id}", answer)
    if decode_answer(head, "a job", answer, _Stopped).stopped:
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
