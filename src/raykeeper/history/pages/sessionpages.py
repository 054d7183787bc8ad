"""The table of our own pages below a session's prefix, beside those of Ray's dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.asked import Asked
from raykeeper.history.keeper.overview import SEARCH_CHARS, log_of_job, overview_of_job, overview_of_session
from raykeeper.history.keeper.report import report_body
from raykeeper.history.pages.job import job_page
from raykeeper.history.pages.report import report_page
from raykeeper.history.pages.searching import get_log_part_page, get_session_search_page
from raykeeper.history.pages.session import session_page
from raykeeper.history.parts import Parts
from raykeeper.history.report.model import Report


@dataclass(frozen=True)
class SessionPage:
    """One path, relative to the session's prefix."""

    path: str
    answer: Callable[[Request, Asked, Parts], Awaitable[Response]]


async def get_report_page(request: Request, asked: Asked, _: Parts) -> Response:
    body = await report_body(asked, request.path_params.get("job"))
    return report_page(msgspec.json.decode(body, type=Report))


async def get_session_page(_: Request, asked: Asked, __: Parts) -> Response:
    overview, report = await asyncio.gather(overview_of_session(asked), report_body(asked, None))
    return session_page(overview, msgspec.json.decode(report, type=Report))


async def get_job_page(request: Request, asked: Asked, parts: Parts) -> Response:
    job, search = request.path_params["job"], request.query_params.get("search", "")[:SEARCH_CHARS]
    overview, report, log = await asyncio.gather(
        overview_of_job(asked, job), report_body(asked, job), log_of_job(asked, parts, job, search)
    )
    return job_page(overview, msgspec.json.decode(report, type=Report), log)


SESSION_PAGES = (
    SessionPage("/overview", get_session_page),
    SessionPage("/job/{job}", get_job_page),
    SessionPage("/search", get_session_search_page),
    SessionPage("/log", get_log_part_page),
    SessionPage("/report", get_report_page),
    SessionPage("/report/{job}", get_report_page),
)
