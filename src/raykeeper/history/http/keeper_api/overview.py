"""A session and a job at a glance, their failure reports, the driver's log, and two runs side by side."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

import msgspec

from raykeeper.history.entities.job import JobUnknown
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.keeper_api.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.jobs_list.find import last_success
from raykeeper.history.overview.compare import Run, compare, read_run
from raykeeper.history.overview.driver_log import DriverLog, driver_log
from raykeeper.history.overview.job import job_overview
from raykeeper.history.overview.model import Comparison, JobOverview, RunRef, SessionOverview
from raykeeper.history.overview.session import session_overview
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.make import find_report
from raykeeper.history.report.model import Report
from raykeeper.history.store.catalog_entries import SessionFilter
from raykeeper.history.store.removals import SessionRemoved
from raykeeper.layout.keys import SessionId


async def _get_report(call: Call[NoQuery]) -> Report:
    """Of the whole session, or of the job that the path names."""
    return await report_of(await call.open(), call.names.get("job"))


async def report_of(context: SessionContext, job: str | None) -> Report:
    """The report, remembered while the session stays as it is. Raises NotFound."""
    try:
        return await find_report(context, job)
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


REPORT_OPERATIONS = (
    Operation("get_session_report", f"{SESSION}/report", "Why a session failed", NoQuery, Report, _get_report),
    Operation("get_job_report", f"{SESSION}/jobs/{{job}}/report", "Why a job failed", NoQuery, Report, _get_report),
)


SEARCH_CHARS = 200
RECENT_SESSIONS = 12
_RUN_PARTS = (3, 4)  # namespace, cluster, session, and perhaps a job

RunText = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1000,
        description="A run: `<namespace>/<cluster>/<session>`, or `…/<job>` for one of its jobs.",
    ),
]


class LogQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    search: Annotated[
        str,
        msgspec.Meta(
            max_length=SEARCH_CHARS, description="Only lines with this in them, and those around; case does not matter."
        ),
    ] = ""


class CompareQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    a: RunText
    b: RunText


async def overview_of_session(context: SessionContext) -> SessionOverview:
    return await context.remembered(
        "session overview", lambda: session_overview(context), lambda overview: not overview.resources.unread_hours
    )


async def overview_of_job(context: SessionContext, job: str) -> JobOverview:
    """Raises NotFound."""
    try:
        return await context.remembered(("job overview", job), lambda: job_overview(context, job))
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


async def log_of_job(context: SessionContext, job: str, search: str) -> DriverLog:
    """Raises NotFound."""
    try:
        return await driver_log(context, await find_job(context, job), search)
    except JobUnknown as exc:
        raise NotFound(str(exc)) from exc


async def comparison_of(history: History, a: str, b: str) -> Comparison:
    """Raises InvalidQuery, also for a run that does not exist."""
    try:
        return compare(*await asyncio.gather(_run(history, parse_run(a)), _run(history, parse_run(b))))
    except (SessionMissing, SessionRemoved, NotFound) as exc:
        raise InvalidQuery(str(exc)) from exc


def parse_run(text: str) -> RunRef:
    """Raises InvalidQuery."""
    names = text.strip("/").split("/", maxsplit=3)
    if len(names) not in _RUN_PARTS or not all(names):
        raise InvalidQuery(
            f"{text!r} is no run: it is <namespace>/<cluster>/<session> or <namespace>/<cluster>/<session>/<job>"
        )
    return RunRef(*names)


async def recent_sessions_beside(history: History, run: str) -> tuple[SessionId, ...]:
    """The newest other sessions of a run's namespace; none for what is no run."""
    try:
        ref = parse_run(run)
    except InvalidQuery:
        return ()
    page = await history.catalog.page(RECENT_SESSIONS + 1, wanted=SessionFilter(namespace=ref.namespace))
    others = [entry.id for entry in page.entries if entry.id.session != ref.session]
    return tuple(others[:RECENT_SESSIONS])


async def last_success_before(history: History, run: str) -> tuple[RunRef, RunRef] | None:
    """The last success of the script that a job ran, and that job; None for what is no job, or the first of its kind.

    Raises InvalidQuery for what is no run.
    """
    ref = parse_run(run)
    if ref.job is None:
        return None
    session = await history.resolve(SessionId(ref.namespace, ref.cluster, ref.session))
    try:
        job = await find_job(await history.open(session), ref.job)
    except (SessionMissing, SessionRemoved, JobUnknown):
        return None
    found = await last_success(history, ref.namespace, job.entrypoint, job.started_at) if job.entrypoint else None
    if found is None:
        return None
    there = found.entry.id
    success = RunRef(there.namespace, there.cluster, there.session, found.job.name)
    return success, replace(ref, session=session.session)


async def _run(history: History, ref: RunRef) -> Run:
    session = await history.resolve(SessionId(ref.namespace, ref.cluster, ref.session))
    context = await history.open(session)
    report = await report_of(context, ref.job)
    named = replace(ref, session=session.session)
    return await context.remembered(("run", ref.job), lambda: read_run(context, named, report))


async def get_session_overview(call: Call[NoQuery]) -> SessionOverview:
    return await overview_of_session(await call.open())


async def get_job_overview(call: Call[NoQuery]) -> JobOverview:
    return await overview_of_job(await call.open(), call.names["job"])


async def get_job_log(call: Call[LogQuery]) -> DriverLog:
    return await log_of_job(await call.open(), call.names["job"], call.query.search)


async def compare_runs(call: Call[CompareQuery]) -> Comparison:
    return await comparison_of(call.history, call.query.a, call.query.b)


OVERVIEW_OPERATIONS = (
    Operation(
        "get_session_overview",
        f"{SESSION}/overview",
        "A session at a glance: tasks over time and by function, nodes, resource-hours, what is missing",
        NoQuery,
        SessionOverview,
        get_session_overview,
    ),
    Operation(
        "get_job_overview",
        f"{SESSION}/jobs/{{job}}/overview",
        "A job at a glance: its timeline, functions and resource-hours",
        NoQuery,
        JobOverview,
        get_job_overview,
    ),
    Operation(
        "get_job_log",
        f"{SESSION}/jobs/{{job}}/log",
        "The end of what a job's driver printed, or the lines of it that hold some words",
        LogQuery,
        DriverLog,
        get_job_log,
    ),
    Operation("compare_runs", "/compare", "What differs between two runs", CompareQuery, Comparison, compare_runs),
)
