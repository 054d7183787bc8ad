"""`raykeeper report`: reads a report from a store or a server, prints it, and says by the exit code whether something
failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from raykeeper.errors import Misconfigured, RaykeeperError, Unavailable
from raykeeper.history.commands.lists import last_failure, opened_lists
from raykeeper.history.commands.report_text import ReportScreen
from raykeeper.history.commands.subjects import (
    RayJobSubject,
    Source,
    Subject,
    ask_server,
    history_over,
    known_session,
    opened_whole,
    parse_subject,
)
from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.overview import overview_of_job
from raykeeper.history.http.pages.export import export_page
from raykeeper.history.query.history import History
from raykeeper.history.report.make import JobUnknown, make_report
from raykeeper.history.report.markdown import to_markdown
from raykeeper.history.report.model import Report
from raykeeper.history.report.unstarted import NO_SESSION, report_on_rayjob, report_on_unstarted, session_of_rayjob
from raykeeper.history.text import counted
from raykeeper.history.urls import job_path, report_path
from raykeeper.layout.keys import SessionId
from raykeeper.layout.rayjobs import RayJobRecord
from raykeeper.storage.store import ObjectStore


async def report_from_store(
    url: str, subject: Subject | RayJobSubject, environment: Mapping[str, str], cache: Path | None
) -> Report:
    """Made from the objects of a store; what is new in it is ingested first."""
    async with history_over(url, environment, cache) as history:
        if isinstance(subject, RayJobSubject):
            return await _of_rayjob(history, subject)
        session = await known_session(history, subject)
        if session is None:
            return await _unstarted(history.catalog.store, subject)
        return await _of_session(history, session, subject.job)


async def _of_rayjob(history: History, subject: RayJobSubject) -> Report:
    try:
        found = await session_of_rayjob(history, subject.namespace, subject.rayjob)
    except NotFound as exc:
        raise Misconfigured("SUBJECT", f"{subject.namespace}/{subject.rayjob}", str(exc)) from exc
    if isinstance(found, RayJobRecord):
        return await report_on_rayjob(history.catalog.store, found)
    return await _of_session(history, found, subject.rayjob)


async def _of_session(history: History, session: SessionId, job: str | None) -> Report:
    context = await opened_whole(history, session)
    try:
        return await make_report(context, job)
    except JobUnknown as exc:
        raise Misconfigured("SUBJECT", job, str(exc)) from exc


async def _unstarted(store: ObjectStore, subject: Subject) -> Report:
    report = await report_on_unstarted(store, subject.session.namespace, subject.session.cluster)
    if report is None:
        raise Misconfigured("SUBJECT", str(subject.session), "the cluster has no session")
    return report


async def report_from_server(url: str, subject: Subject | RayJobSubject, token: str) -> Report:
    """As a history server answers it."""
    body = await ask_server(url, subject.path, token)
    try:
        return msgspec.json.decode(body, type=Report)
    except msgspec.DecodeError as exc:
        raise Unavailable(url, str(exc)) from exc


NOTHING_FAILED, FAILURES, NO_REPORT = 0, 1, 2
Form = Literal["text", "markdown", "json"]


@dataclass(frozen=True)
class ReportCommand:
    """What the command line said."""

    subject: str
    """Empty: the job that failed last."""
    source: Source
    form: Form = "text"
    html: Path | None = None
    """File for the report as one page, beside what is printed."""
    is_full: bool = False


class NoReport(Exception):
    """There is no report; the text says why."""


Tell = Callable[[str], object]
"""Takes one line for a person, beside the report."""


def run(command: ReportCommand, environment: Mapping[str, str], screen: ReportScreen, tell: Tell) -> int:
    """Print the report; the exit code. Raises NoReport."""
    try:
        subject = asyncio.run(_subject(command, environment, tell))
        if subject is None:
            return NOTHING_FAILED
        report = asyncio.run(_read(command.source, subject, environment))
        if command.html is not None:
            page = asyncio.run(_page(command.source, subject, report, environment))
            command.html.write_bytes(page)
            tell(f"raykeeper: {command.html} has the report as one page, {len(page) / 1000:,.0f} kB")
    except (RaykeeperError, OSError) as exc:
        raise NoReport(str(exc)) from exc
    if command.form == "json":
        screen.show_text(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    elif command.form == "markdown":
        screen.show_text(to_markdown(report))
    else:
        screen.show(report, is_full=command.is_full)
    return NOTHING_FAILED if report.outcome.is_well else FAILURES


async def _subject(
    command: ReportCommand, environment: Mapping[str, str], tell: Tell
) -> Subject | RayJobSubject | None:
    """What is named; else the job that failed last, and which that is. None where none failed. Raises NoReport."""
    if command.subject:
        return parse_subject(command.subject)
    async with opened_lists(command.source, environment) as lists:
        found = await last_failure(lists)
    if found.unread:
        tell(f"raykeeper: {counted(found.unread, 'session')} not read yet, so a later failure may be missing")
    if found.subject is not None:
        name = "/".join(filter(None, (str(found.subject.session), found.subject.job)))
        tell(
            f"raykeeper: the last failure is {name}. For another: raykeeper report <name>; `raykeeper jobs` lists them"
        )
        return found.subject
    if not found.looked_at:
        raise NoReport("there are no jobs yet: `raykeeper demo` runs one, `raykeeper sessions` lists sessions")
    jobs = counted(found.looked_at, "job")
    tell(f"raykeeper: nothing failed in the newest {jobs}. For one of them: raykeeper report <name>")
    return None


async def _read(source: Source, subject: Subject | RayJobSubject, environment: Mapping[str, str]) -> Report:
    source.check()
    if source.store:
        return await report_from_store(source.store, subject, environment, source.cache_dir)
    return await report_from_server(source.server, subject, source.token(environment))


async def _page(
    source: Source, subject: Subject | RayJobSubject, report: Report, environment: Mapping[str, str]
) -> bytes:
    """The report as one HTML file: with timeline and environment where it is about a job."""
    session = SessionId(report.namespace, report.cluster, report.session)
    if isinstance(subject, RayJobSubject) or report.session == NO_SESSION:
        return export_page(report, site=source.server.rstrip("/")).encode()
    if source.server:
        path = f"{job_path(session, subject.job)}/report.html" if subject.job else f"{report_path(session)}.html"
        return await ask_server(source.server, path, source.token(environment))
    async with history_over(source.store, environment, source.cache_dir) as history:
        context = await opened_whole(history, session)
        try:
            overview = await overview_of_job(context, subject.job) if subject.job else None
        except NotFound:
            overview = None
        return export_page(report, overview).encode()
