"""The table of our own pages: those of a session, and those of the site."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.overview import (
    comparison_of,
    last_success_before,
    overview_of_session,
    recent_sessions_beside,
    report_of,
)
from raykeeper.history.http.pages.compare import compare_form_page, compare_page
from raykeeper.history.http.pages.failures import (
    FAILURES_PATH,
    get_failure_kind,
    list_failure_kinds,
    post_failure_note,
)
from raykeeper.history.http.pages.job import get_job_markdown, get_job_page
from raykeeper.history.http.pages.jobs import get_home, list_all_jobs
from raykeeper.history.http.pages.live import get_live_object, list_live_objects
from raykeeper.history.http.pages.log_tail import get_log_tail
from raykeeper.history.http.pages.log_viewer import get_log_of, get_log_page
from raykeeper.history.http.pages.monitoring import get_monitoring, get_session_monitoring
from raykeeper.history.http.pages.report import report_page
from raykeeper.history.http.pages.search import get_search_page, get_session_search_page
from raykeeper.history.http.pages.session import session_page
from raykeeper.history.http.pages.sessions import (
    SESSIONS_PATH,
    add_slash,
    get_cluster_page,
    get_rayjob_page,
    list_sessions,
    redirect_to_latest,
)
from raykeeper.history.http.pages.timeline import get_timeline_page
from raykeeper.history.http.ray_api.metrics import GRAFANA_PATH, get_grafana_at_its_time
from raykeeper.history.http.routing import NEWEST, SESSION_PATH
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.urls import LIVE_PATH, MONITORING_PATH, compare_path


@dataclass(frozen=True)
class SessionPage:
    """One path, relative to the session's prefix."""

    path: str
    answer: Callable[[Request, SessionContext, History], Awaitable[Response]]


async def _get_report_page(_: Request, context: SessionContext, __: History) -> Response:
    return report_page(await report_of(context, None))


async def _get_session_page(_: Request, context: SessionContext, __: History) -> Response:
    overview, report = await asyncio.gather(overview_of_session(context), report_of(context, None))
    return session_page(overview, report)


async def _get_grafana(request: Request, context: SessionContext, _: History) -> Response:
    return await get_grafana_at_its_time(request, context)


SESSION_PAGES = (
    SessionPage("/overview", _get_session_page),
    SessionPage("/monitoring", get_session_monitoring),
    SessionPage("/job/{job}", get_job_page),
    SessionPage("/job/{job}/report.md", get_job_markdown),
    SessionPage("/job/{job}/{tab}", get_job_page),
    SessionPage("/timeline", get_timeline_page),
    SessionPage("/search", get_session_search_page),
    SessionPage("/log", get_log_page),
    SessionPage("/log/of", get_log_of),
    SessionPage("/log/tail", get_log_tail),
    SessionPage("/report", _get_report_page),
    SessionPage("/report/{job}", get_job_page),
    SessionPage(f"/{GRAFANA_PATH}/{{path:path}}", _get_grafana),
)


@dataclass(frozen=True)
class SitePage:
    path: str
    answer: Callable[[Request, History], Awaitable[Response]]
    method: str = "GET"


async def _get_compare_page(request: Request, history: History) -> Response:
    """Two runs; of one job alone, with the last success of the same script.

    Without both, or where they cannot be compared, the form that asks for them.
    """
    a, b = (request.query_params.get(name, "").strip() for name in ("a", "b"))
    try:
        if a and not b and (pair := await last_success_before(history, a)):
            success, job = pair
            return RedirectResponse(compare_path(str(success), str(job)), 302)
        if not (a and b):
            return compare_form_page(a, b, others=await recent_sessions_beside(history, a))
        return compare_page(await comparison_of(history, a, b))
    except InvalidQuery as exc:
        return compare_form_page(a, b, str(exc))


SITE_PAGES = (
    SitePage("/", get_home),
    SitePage(SESSIONS_PATH, list_sessions),
    SitePage("/select_cluster", list_sessions),
    SitePage("/jobs", list_all_jobs),
    SitePage(FAILURES_PATH, list_failure_kinds),
    SitePage(f"{FAILURES_PATH}/{{fingerprint}}", get_failure_kind),
    SitePage(f"{FAILURES_PATH}/{{fingerprint}}/note", post_failure_note, method="POST"),
    SitePage(MONITORING_PATH, get_monitoring),
    SitePage(LIVE_PATH, list_live_objects),
    SitePage(f"{LIVE_PATH}/{{kind}}/{{namespace}}/{{name}}", get_live_object),
    SitePage("/compare", _get_compare_page),
    SitePage("/search", get_search_page),
    SitePage("/clusters/{namespace}/{cluster}", get_cluster_page),
    SitePage("/rayjobs/{namespace}/{rayjob}", get_rayjob_page),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}", redirect_to_latest) for word in NEWEST),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}/{{rest:path}}", redirect_to_latest) for word in NEWEST),
    SitePage(SESSION_PATH, add_slash),
)
