"""What a report is about: a whole session, one of its jobs, or what a RayJob ran in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.report.logslice import driver_log
from raykeeper.history.report.model import JobOutcome
from raykeeper.history.report.shaping import job_outcome, uncoloured_log
from raykeeper.layout.records import SessionRecord

_DRIVER_LOGS_LIMIT = 10  # each costs reads of the store
_RAYJOB = "RayJob"


class JobUnknown(Exception):
    """The session has no such job."""


@dataclass(frozen=True)
class Scope:
    """What is reported on."""

    name: str | None
    job_id: str | None
    """None: all tasks. A job that never had a driver has no tasks, and an empty id here."""
    jobs: tuple[JobOutcome, ...]


async def find_scope(asked: Asked, wanted: str | None) -> Scope:
    """The whole session, or what the name means: a job's id, a submission's, or that of a RayJob. Raises JobUnknown."""
    jobs = [job_outcome(job) for job in await known_jobs(asked)]
    if wanted is None:
        return Scope(None, None, await _with_driver_logs(asked, jobs))
    found = job_named(jobs, wanted)
    if found is not None:
        return Scope(wanted, found.job_id or "", await _with_driver_logs(asked, [found]))
    if _was_made_for(asked.session.record, wanted):
        return Scope(wanted, None, await _with_driver_logs(asked, jobs))
    raise JobUnknown(f"there is no job {wanted} in session {asked.session.id}")


def job_named(jobs: Sequence[JobOutcome], wanted: str) -> JobOutcome | None:
    """By its id or its submission's; else the last try of the RayJob of that name, whose submissions end in letters."""
    exact = next((job for job in jobs if wanted in (job.job_id, job.submission_id)), None)
    tries = re.compile(rf"{re.escape(wanted)}-[a-z0-9]{{5}}")
    of_rayjob = [job for job in jobs if job.submission_id and tries.fullmatch(job.submission_id)]
    return exact or max(of_rayjob, key=lambda job: (job.started_at is not None, job.started_at), default=None)


def _was_made_for(record: SessionRecord | None, rayjob: str) -> bool:
    """Whether the cluster was made for this RayJob: then all of the session is about it, also if nothing ever ran."""
    return record is not None and (record.owner_kind, record.owner_name) == (_RAYJOB, rayjob)


async def _with_driver_logs(asked: Asked, jobs: Sequence[JobOutcome]) -> tuple[JobOutcome, ...]:
    """The jobs; the first of those that failed with the end of their drivers' logs, without colours."""
    failed = [job.submission_id for job in jobs if job.status == "FAILED" and job.submission_id][:_DRIVER_LOGS_LIMIT]
    logs = {name: await driver_log(asked, name) for name in failed}
    return tuple(replace(job, log=uncoloured_log(logs.get(job.submission_id or ""))) for job in jobs)
