"""One Ray job, read out of what Ray's job API says about it, and the look-up by any of its names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from raykeeper.history.text import without_ansi
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.layout.records import SessionRecord
from raykeeper.times import from_ms

OPEN_STATUSES = frozenset({"PENDING", "RUNNING"})
"""Of a job that is not over."""
CLUSTER_ENDED = "Cluster ended"
"""The message of a job that was at work when its cluster ended, in place of Ray's own."""


MOST_JOBS = 50_000
"""Of one session; Ray's own list has 10,000 at most."""
_NAMES = ("type", "job_id", "submission_id")


def rays_jobs(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What of a polled list Ray can have said: whoever has the dashboard's port may answer in its place."""
    known = (row for row in rows if isinstance(row.get("status"), str))
    named = (row for row in known if all(isinstance(row.get(name), str | None) for name in _NAMES))
    return [dict(row) for row in islice(named, MOST_JOBS)]


class JobUnknown(Exception):
    """The session has no such job."""


@dataclass(frozen=True)
class Job:
    """One job. `ray_json` is Ray's own account, which only the endpoints of Ray's API show."""

    ray_json: Mapping[str, Any]

    def _text(self, name: str) -> str | None:
        """Polled answers are data that anybody may have written: what is no text counts as missing."""
        value = self.ray_json.get(name)
        return value if isinstance(value, str) else None

    @property
    def job_id(self) -> str | None:
        return self._text("job_id")

    @property
    def submission_id(self) -> str | None:
        return self._text("submission_id")

    @property
    def ids(self) -> tuple[str | None, str | None]:
        return self.job_id, self.submission_id

    @property
    def name(self) -> str:
        """By which pages call it: its submission's id where it has one."""
        return self.submission_id or self.job_id or ""

    @property
    def is_submission(self) -> bool:
        """Its driver was started by Ray, so that there is a log of it."""
        return self.ray_json.get("type") == "SUBMISSION"

    @property
    def status(self) -> str:
        return self._text("status") or "UNKNOWN"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    @property
    def is_cut_off(self) -> bool:
        """It was at work when its cluster ended."""
        return self.ray_json.get("message") == CLUSTER_ENDED

    @property
    def message(self) -> str | None:
        """Without the colours of a terminal."""
        message = self._text("message")
        return None if message is None else without_ansi(message)

    @property
    def error_type(self) -> str | None:
        return self._text("error_type")

    @property
    def exit_code(self) -> int | None:
        code = self.ray_json.get("driver_exit_code")
        return code if isinstance(code, int) else None

    @property
    def entrypoint(self) -> str:
        return self._text("entrypoint") or ""

    @property
    def started_at(self) -> datetime | None:
        return from_ms(self.ray_json.get("start_time"))

    @property
    def ended_at(self) -> datetime | None:
        """None for one that still runs, whatever Ray says."""
        return None if self.is_open else from_ms(self.ray_json.get("end_time"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata = self.ray_json.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def runtime_env(self) -> dict[str, Any]:
        environment = self.ray_json.get("runtime_env")
        return environment if isinstance(environment, dict) else {}

    @property
    def driver_node_id(self) -> str:
        """Empty where no driver ever started."""
        return self._text("driver_node_id") or ""

    @property
    def log_name(self) -> str:
        return driver_log_name(self.submission_id or "")


_SCRIPT = re.compile(r"(?:^|[\s/=\"'])(?P<name>[\w.+-]+\.(?:py|sh|ipynb))(?=$|[\s\"'])")
_MODULE = re.compile(r"\s-m\s+(?P<name>[\w.]+)")


def script_name(entrypoint: str) -> str:
    """What people call a job by: the script that its command runs, or the module; empty where it runs neither."""
    found = _SCRIPT.search(entrypoint) or _MODULE.search(entrypoint)
    return found["name"] if found else ""


def driver_log_name(submission_id: str) -> str:
    """Of the file below `logs/` that Ray writes the driver's output to."""
    return f"job-driver-{submission_id}.log"


def job_of_id(jobs: Iterable[Job], wanted: str) -> Job | None:
    """By its id or its submission's."""
    return next((job for job in jobs if wanted and wanted in job.ids), None)


def job_named(jobs: Iterable[Job], wanted: str, rayjobs: Iterable[RayJobRecord] = ()) -> Job | None:
    """By its id or its submission's; else the last try of the RayJob of that name.

    What Kubernetes says of that RayJob counts first; else its submissions are known by the letters that they end in.
    """
    known = list(jobs)
    by_submission = {job.submission_id: job for job in known if job.submission_id}
    told = (id_ for record in rayjobs if record.name == wanted for id_ in record.job_ids if id_ in by_submission)
    exact = job_of_id(known, wanted) or by_submission.get(next(told, ""))
    tries = re.compile(rf"{re.escape(wanted)}-[a-z0-9]{{5}}")
    of_rayjob = [job for job in known if job.submission_id and tries.fullmatch(job.submission_id)]
    return exact or max(of_rayjob, key=_start, default=None)


def is_of_rayjob(job: Job, record: RayJobRecord) -> bool:
    """Whether the RayJob submitted this job."""
    return job.submission_id is not None and job.submission_id in record.job_ids


def is_made_for(record: SessionRecord | None, rayjob: str) -> bool:
    """Whether the cluster was made for this RayJob: then all of the session is about it, also if nothing ever ran."""
    return record is not None and (record.owner_kind, record.owner_name) == ("RayJob", rayjob)


def newest_first(jobs: Iterable[Job]) -> Sequence[Job]:
    return sorted(jobs, key=lambda job: (*_start(job), job.name), reverse=True)


def ended_with_cluster(job: Mapping[str, Any], ended_at: datetime | None) -> dict[str, Any]:
    """What Ray says of a job; one that was at work when its cluster ended has failed with it."""
    if ended_at is None or job.get("status") not in OPEN_STATUSES:
        return dict(job)
    end = {"status": "FAILED", "message": CLUSTER_ENDED, "end_time": int(ended_at.timestamp() * 1000)}
    return {**job, **end}


def _start(job: Job) -> tuple[bool, float]:
    return job.started_at is not None, job.started_at.timestamp() if job.started_at else 0.0
