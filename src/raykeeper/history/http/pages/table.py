"""The table of our own pages: those of a session, and those of the site."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.keeper_api.overview import (
    SEARCH_CHARS,
    comparison_of,
    log_of_job,
    overview_of_job,
    overview_of_session,
    recent_sessions_beside,
    report_of,
)
from raykeeper.history.http.pages.compare import compare_form_page, compare_page
from raykeeper.history.http.pages.job import job_page
from raykeeper.history.http.pages.jobs import list_all_jobs
from raykeeper.history.http.pages.report import report_page
from raykeeper.history.http.pages.search import get_log_part_page, get_search_page, get_session_search_page
from raykeeper.history.http.pages.session import session_page
from raykeeper.history.http.pages.start import (
    add_slash,
    get_cluster_page,
    get_rayjob_page,
    list_sessions,
    redirect_to_latest,
)
from raykeeper.history.http.routing import NEWEST, SESSION_PATH
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History


@dataclass(frozen=True)
class SessionPage:
    """One path, relative to the session's prefix."""

    path: str
    answer: Callable[[Request, SessionContext, History], Awaitable[Response]]


async def _get_report_page(request: Request, context: SessionContext, _: History) -> Response:
    return report_page(await report_of(context, request.path_params.get("job")))


async def _get_session_page(_: Request, context: SessionContext, __: History) -> Response:
    overview, report = await asyncio.gather(overview_of_session(context), report_of(context, None))
    return session_page(overview, report)


async def _get_job_page(request: Request, context: SessionContext, _: History) -> Response:
    job, search = request.path_params["job"], request.query_params.get("search", "")[:SEARCH_CHARS]
    report = await report_of(context, job)
    try:
        overview, log = await asyncio.gather(overview_of_job(context, job), log_of_job(context, job, search))
    except NotFound:  # a RayJob that never got as far as a job of Ray has a report all the same
        return report_page(report)
    return job_page(overview, report, log)


SESSION_PAGES = (
    SessionPage("/overview", _get_session_page),
    SessionPage("/job/{job}", _get_job_page),
    SessionPage("/search", get_session_search_page),
    SessionPage("/log", get_log_part_page),
    SessionPage("/report", _get_report_page),
    SessionPage("/report/{job}", _get_report_page),
)


@dataclass(frozen=True)
class SitePage:
    path: str
    answer: Callable[[Request, History], Awaitable[Response]]


async def _get_compare_page(request: Request, history: History) -> Response:
    """Two runs; without both, or where they cannot be compared, the form that asks for them."""
    a, b = (request.query_params.get(name, "").strip() for name in ("a", "b"))
    if not (a and b):
        return compare_form_page(a, b, others=await recent_sessions_beside(history, a))
    try:
        return compare_page(await comparison_of(history, a, b))
    except InvalidQuery as exc:
        return compare_form_page(a, b, str(exc))


SITE_PAGES = (
    SitePage("/", list_sessions),
    SitePage("/select_cluster", list_sessions),
    SitePage("/jobs", list_all_jobs),
    SitePage("/compare", _get_compare_page),
    SitePage("/search", get_search_page),
    SitePage("/clusters/{namespace}/{cluster}", get_cluster_page),
    SitePage("/rayjobs/{namespace}/{rayjob}", get_rayjob_page),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}", redirect_to_latest) for word in NEWEST),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}/{{rest:path}}", redirect_to_latest) for word in NEWEST),
    SitePage(SESSION_PATH, add_slash),
)
