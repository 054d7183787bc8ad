"""A session and a job at a glance, what a driver printed, and two runs side by side."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

import msgspec

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.asked import Asked
from raykeeper.history.entries import SessionFilter
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.keeper.operation import SESSION, Call, NoQuery, Operation, Query
from raykeeper.history.keeper.problems import NotThere
from raykeeper.history.keeper.report import report_body
from raykeeper.history.overview.comparing import compare
from raykeeper.history.overview.comparison import Comparison, RunRef
from raykeeper.history.overview.driverlog import DriverLog, driver_log
from raykeeper.history.overview.job import find_job, job_overview
from raykeeper.history.overview.model import JobOverview, SessionOverview
from raykeeper.history.overview.remembering import remembered
from raykeeper.history.overview.runs import Run, read_run
from raykeeper.history.overview.session import session_overview
from raykeeper.history.parts import Parts
from raykeeper.history.report.making import JobUnknown
from raykeeper.history.report.model import Report
from raykeeper.layout.keys import SessionId

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


async def overview_of_session(asked: Asked) -> SessionOverview:
    return await remembered(asked, "session", SessionOverview, lambda: session_overview(asked))


async def overview_of_job(asked: Asked, job: str) -> JobOverview:
    """Raises NotThere."""
    try:
        return await remembered(asked, ("job", job), JobOverview, lambda: job_overview(asked, job))
    except JobUnknown as exc:
        raise NotThere(str(exc)) from exc


async def log_of_job(asked: Asked, parts: Parts, job: str, search: str) -> DriverLog:
    """Raises NotThere."""
    try:
        return await driver_log(asked, parts.logs, await find_job(asked, job), search)
    except JobUnknown as exc:
        raise NotThere(str(exc)) from exc


async def comparison_of(parts: Parts, a: str, b: str) -> Comparison:
    """Raises InvalidQuery, also for a run that does not exist."""
    try:
        return compare(*await asyncio.gather(_run(parts, parse_run(a)), _run(parts, parse_run(b))))
    except (SessionMissing, NotThere) as exc:
        raise InvalidQuery(str(exc)) from exc


def parse_run(text: str) -> RunRef:
    """Raises InvalidQuery."""
    names = text.strip("/").split("/", maxsplit=3)
    if len(names) not in _RUN_PARTS or not all(names):
        raise InvalidQuery(
            f"{text!r} is no run: it is <namespace>/<cluster>/<session> or <namespace>/<cluster>/<session>/<job>"
        )
    return RunRef(*names)


async def recent_sessions_beside(parts: Parts, run: str) -> tuple[SessionId, ...]:
    """The newest other sessions of a run's namespace; none for what is no run."""
    try:
        ref = parse_run(run)
    except InvalidQuery:
        return ()
    page = await parts.catalog.page(RECENT_SESSIONS + 1, wanted=SessionFilter(namespace=ref.namespace))
    others = [entry.id for entry in page.entries if entry.id.session != ref.session]
    return tuple(others[:RECENT_SESSIONS])


async def _run(parts: Parts, ref: RunRef) -> Run:
    session = await parts.resolve(SessionId(ref.namespace, ref.cluster, ref.session))
    asked = await parts.ask(session)
    report = msgspec.json.decode(await report_body(asked, ref.job), type=Report)
    named = replace(ref, session=session.session)
    return await remembered(asked, ("run", ref.job), Run, lambda: read_run(asked, named, report))


async def get_session_overview(call: Call[NoQuery]) -> SessionOverview:
    return await overview_of_session(await call.ask())


async def get_job_overview(call: Call[NoQuery]) -> JobOverview:
    return await overview_of_job(await call.ask(), call.names["job"])


async def get_job_log(call: Call[LogQuery]) -> DriverLog:
    return await log_of_job(await call.ask(), call.parts, call.names["job"], call.query.search)


async def compare_runs(call: Call[CompareQuery]) -> Comparison:
    return await comparison_of(call.parts, call.query.a, call.query.b)


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
        "A job at a glance: its time line, functions and resource-hours",
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
