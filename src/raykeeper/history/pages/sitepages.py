"""The table of our own pages that are about no session, or lead to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.addressing import NEWEST, SESSION_PATH
from raykeeper.history.answers import InvalidQuery
from raykeeper.history.keeper.overview import comparison_of, recent_sessions_beside
from raykeeper.history.pages.compare import compare_form_page, compare_page
from raykeeper.history.pages.jobs import list_all_jobs
from raykeeper.history.pages.listing import add_slash, list_sessions, redirect_to_latest
from raykeeper.history.pages.searching import get_search_page
from raykeeper.history.pages.unstarted import get_cluster_page
from raykeeper.history.parts import Parts


@dataclass(frozen=True)
class SitePage:
    path: str
    answer: Callable[[Request, Parts], Awaitable[Response]]


async def get_compare_page(request: Request, parts: Parts) -> Response:
    """Two runs; without both, or where they cannot be compared, the form that asks for them."""
    a, b = (request.query_params.get(name, "").strip() for name in ("a", "b"))
    if not (a and b):
        return compare_form_page(a, b, others=await recent_sessions_beside(parts, a))
    try:
        return compare_page(await comparison_of(parts, a, b))
    except InvalidQuery as exc:
        return compare_form_page(a, b, str(exc))


SITE_PAGES = (
    SitePage("/", list_sessions),
    SitePage("/select_cluster", list_sessions),
    SitePage("/jobs", list_all_jobs),
    SitePage("/compare", get_compare_page),
    SitePage("/search", get_search_page),
    SitePage("/clusters/{namespace}/{cluster}", get_cluster_page),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}", redirect_to_latest) for word in NEWEST),
    *(SitePage(f"/s/{{namespace}}/{{cluster}}/{word}/{{rest:path}}", redirect_to_latest) for word in NEWEST),
    SitePage(SESSION_PATH, add_slash),
)
