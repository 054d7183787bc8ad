"""Operations on jobs: those of all clusters, those of one session, and one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from raykeeper.history.alljobs.finding import FoundJobs, WantedJobs, find_jobs
from raykeeper.history.alljobs.paging import parse_jobs_place
from raykeeper.history.alljobs.summarizing import COUNTED_TASKS, job_summary, newest_first, tasks_by_job
from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.jobs import known_jobs
from raykeeper.history.entries import SessionFilter
from raykeeper.history.keeper.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.keeper.problems import NotThere
from raykeeper.history.keeper.sessions import PAGE_LIMIT, PAGE_ROWS, Name
from raykeeper.history.pages.addresses import report_path
from raykeeper.history.parts import Parts
from raykeeper.history.secretpatterns import MASK, is_secret_name, masked_text
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import JobSummary

Status = Literal["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]


class JobsQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs are wanted, and from where on."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="Jobs of one page.")] = PAGE_ROWS
    after: Annotated[str, Meta(max_length=4000, description="`next` of the page before this one.")] = ""
    namespace: Annotated[Name, Meta(description="Only jobs of this namespace.")] = ""
    cluster: Annotated[Name, Meta(description="Only jobs of clusters of this name.")] = ""
    owner: Annotated[Name, Meta(description="Only jobs of the RayJob or RayService of this name.")] = ""
    status: Annotated[Status, Meta(description="Only jobs of this status.")] | None = None
    since: Annotated[datetime, Meta(tz=True, description="Only of sessions that started then or later.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Only of sessions that started before.")] | None = None
    text: Annotated[
        Name, Meta(description="Only jobs with all of these words in names, entrypoint, metadata or failure.")
    ] = ""


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job, as lists show it. Secrets are masked."""

    namespace: str
    cluster: str
    session: str
    job_id: str | None
    submission_id: str | None
    status: Annotated[str, Meta(description="In Ray's words; FAILED if its cluster ended before it did.")]
    started_at: datetime | None
    ended_at: datetime | None
    entrypoint: str
    metadata: dict[str, str]
    failure: Annotated[str, Meta(description="Why it failed, in one line; empty where it did not.")]
    tasks: Annotated[dict[str, int], Meta(description="Attempts of its tasks by their state, where they were counted.")]
    report: Annotated[str, Meta(description="Path of the page that says why it failed.")]


class JobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the list of jobs, the newest first."""

    jobs: tuple[ListedJob, ...]
    next: Annotated[str | None, Meta(description="For `after`, where there may be more.")]
    unread: Annotated[int, Meta(description="Sessions of which nothing is known yet; they are being read.")]
    left_out: Annotated[int, Meta(description="Older jobs of sessions that have more than a list holds.")]
    unreadable: Annotated[int, Meta(description="Entries of the catalog that could not be read and are missing.")]


class SessionJobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of one session, the newest first."""

    jobs: tuple[ListedJob, ...]


async def list_jobs(call: Call[JobsQuery]) -> JobsAnswer:
    return jobs_answer(await jobs_found(call.parts, call.query))


async def list_session_jobs(call: Call[NoQuery]) -> SessionJobsAnswer:
    return SessionJobsAnswer(jobs=await session_jobs(await call.ask()))


async def get_job(call: Call[NoQuery]) -> ListedJob:
    asked, wanted = await call.ask(), call.names["job"]
    for job in await session_jobs(asked):
        if wanted in (job.submission_id, job.job_id):
            return job
    raise NotThere(f"there is no job {wanted} in session {asked.session.id}")


async def jobs_found(parts: Parts, query: JobsQuery) -> FoundJobs:
    """What the query asks for. Raises InvalidQuery."""
    wanted = WantedJobs(
        limit=query.limit,
        after=parse_jobs_place(query.after) if query.after else None,
        within=SessionFilter(query.namespace, query.cluster, query.owner, query.since, query.until, query.text),
        status=query.status or "",
    )
    return await find_jobs(parts, wanted)


async def session_jobs(asked: Asked) -> tuple[ListedJob, ...]:
    """Every job of a session; why one failed is told by its own message, and at length by its report."""
    tasks = tasks_by_job(await asked.rows(COUNTED_TASKS))
    jobs = newest_first(await known_jobs(asked))
    session = asked.session.id
    return tuple(listed_job(session, job_summary(job, tasks=tasks.get(job.get("job_id")))) for job in jobs)


def jobs_answer(found: FoundJobs) -> JobsAnswer:
    return JobsAnswer(
        jobs=tuple(listed_job(one.entry.id, one.job) for one in found.jobs),
        next=str(found.next_place) if found.next_place else None,
        unread=found.unread,
        left_out=found.left_out,
        unreadable=found.unreadable,
    )


def listed_job(session: SessionId, job: JobSummary) -> ListedJob:
    """Summaries hold what users wrote; it is masked whenever it is served."""
    return ListedJob(
        namespace=session.namespace,
        cluster=session.cluster,
        session=session.session,
        job_id=job.job_id,
        submission_id=job.submission_id,
        status=job.status,
        started_at=job.started_at,
        ended_at=job.ended_at,
        entrypoint=masked_text(job.entrypoint),
        metadata={name: MASK if is_secret_name(name) else masked_text(text) for name, text in job.metadata.items()},
        failure=masked_text(job.failure),
        tasks=job.tasks,
        report=report_path(session, job.name or None),
    )


_JOBS = f"{SESSION}/jobs"
JOB_OPERATIONS = (
    Operation("list_jobs", "/jobs", "Jobs of all clusters", JobsQuery, JobsAnswer, list_jobs),
    Operation("list_session_jobs", _JOBS, "Jobs of one session", NoQuery, SessionJobsAnswer, list_session_jobs),
    Operation("get_job", f"{_JOBS}/{{job}}", "One job", NoQuery, ListedJob, get_job),
)
