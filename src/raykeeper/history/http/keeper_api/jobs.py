"""Operations on jobs: those of all clusters, those of one session, and one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.http.keeper_api.sessions import PAGE_LIMIT, PAGE_ROWS, Name
from raykeeper.history.jobs_list.find import FoundJobs, JobsRequest, find_jobs, parse_jobs_place
from raykeeper.history.jobs_list.summary import job_summaries
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.store.catalog_entries import SessionFilter
from raykeeper.history.urls import report_path
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import FailureSummary, HeadlineSummary, JobSummary
from raykeeper.masking import masked_text, masked_value
from raykeeper.rayevents.states import JobStatus

OutcomeName = Literal["ok", "failed", "with failures", "running", "stopped"]
OUTCOMES: dict[str, tuple[str, ...]] = {
    "ok": (Outcome.OK,),
    "failed": (Outcome.FAILED,),
    "with failures": (Outcome.WITH_FAILURES,),
    "running": (Outcome.RUNNING, Outcome.FAILING),
    "stopped": (Outcome.STOPPED,),
}
"""By which a list is narrowed."""


class JobsQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs are wanted, and from where on."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="Jobs of one page.")] = PAGE_ROWS
    after: Annotated[str, Meta(max_length=4000, description="`next` of the page before this one.")] = ""
    namespace: Annotated[Name, Meta(description="Only jobs of this namespace.")] = ""
    cluster: Annotated[Name, Meta(description="Only jobs of clusters of this name.")] = ""
    owner: Annotated[Name, Meta(description="Only jobs of the RayJob or RayService of this name.")] = ""
    status: Annotated[JobStatus, Meta(description="Only jobs of this status.")] | None = None
    outcome: (
        Annotated[
            OutcomeName,
            Meta(description="Only jobs that went like that; `running` with and without failures."),
        ]
        | None
    ) = None
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
    outcome: Annotated[str, Meta(description="That of its report; by its status where nothing failed in it.")]
    failure: Annotated[str, Meta(description="Why it failed, in one line; empty where it did not.")]
    is_doubtful: Annotated[
        bool, Meta(description="It counts as running, but the head of its session missed a heartbeat.")
    ] = False
    is_provisional: Annotated[
        bool, Meta(description="There is no report yet: the outcome and that line are what the job itself says.")
    ]
    headline: Annotated[
        HeadlineSummary | None,
        Meta(description="What its report says first, where there is one and something failed."),
    ]
    failures: Annotated[tuple[FailureSummary, ...], Meta(description="What failed in it: the first is the root cause.")]
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
    return jobs_answer(await jobs_found(call.history, call.query))


async def list_session_jobs(call: Call[NoQuery]) -> SessionJobsAnswer:
    return SessionJobsAnswer(jobs=await session_jobs(await call.open()))


async def get_job(call: Call[NoQuery]) -> ListedJob:
    context = await call.open()
    try:
        wanted = await find_job(context, call.names["job"])
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc
    return next(job for job in await session_jobs(context) if (job.job_id, job.submission_id) == wanted.ids)


async def jobs_found(history: History, query: JobsQuery) -> FoundJobs:
    """What the query asks for. Raises InvalidQuery."""
    wanted = JobsRequest(
        limit=query.limit,
        after=parse_jobs_place(query.after) if query.after else None,
        within=SessionFilter(query.namespace, query.cluster, query.owner, query.since, query.until, query.text),
        status=query.status or "",
        outcomes=OUTCOMES[query.outcome] if query.outcome else (),
    )
    return await find_jobs(history, wanted)


async def session_jobs(context: SessionContext) -> tuple[ListedJob, ...]:
    """Every job of a session, in the words of the list of all jobs."""
    session, jobs = context.session, await context.remembered("jobs", lambda: job_summaries(context))
    return tuple(_listed_job(session.id, job, is_silent=session.state.is_doubtful) for job in jobs)


def jobs_answer(found: FoundJobs) -> JobsAnswer:
    return JobsAnswer(
        jobs=tuple(_listed_job(one.entry.id, one.job, is_silent=one.is_session_doubtful) for one in found.jobs),
        next=str(found.next_place) if found.next_place else None,
        unread=found.unread,
        left_out=found.left_out,
        unreadable=found.unreadable,
    )


def _listed_job(session: SessionId, job: JobSummary, *, is_silent: bool) -> ListedJob:
    """Summaries hold what users wrote; it is masked whenever it is served. `is_silent`: the head of its session is."""
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
        metadata=masked_value(dict(job.metadata)),
        outcome=job.outcome,
        is_doubtful=is_silent and job.outcome in OUTCOMES["running"],
        failure=masked_text(job.failure),
        is_provisional=job.is_provisional,
        headline=masked_value(job.headline),
        failures=masked_value(job.failures),
        tasks=job.tasks,
        report=report_path(session, job.name or None),
    )


_JOBS = f"{SESSION}/jobs"
JOB_OPERATIONS = (
    Operation("list_jobs", "/jobs", "Jobs of all clusters", JobsQuery, JobsAnswer, list_jobs),
    Operation("list_session_jobs", _JOBS, "Jobs of one session", NoQuery, SessionJobsAnswer, list_session_jobs),
    Operation("get_job", f"{_JOBS}/{{job}}", "One job", NoQuery, ListedJob, get_job),
)
