"""The table of our own pages that are about no session, or lead to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.addressing import LATEST, SESSION_PATH
from raykeeper.history.pages.listing import add_slash, list_sessions, redirect_to_latest
from raykeeper.history.parts import Parts


@dataclass(frozen=True)
class SitePage:
    path: str
    answer: Callable[[Request, Parts], Awaitable[Response]]


SITE_PAGES = (
    SitePage("/", list_sessions),
    SitePage("/select_cluster", list_sessions),
    SitePage(f"/s/{{namespace}}/{{cluster}}/{LATEST}", redirect_to_latest),
    SitePage(f"/s/{{namespace}}/{{cluster}}/{LATEST}/{{rest:path}}", redirect_to_latest),
    SitePage(SESSION_PATH, add_slash),
)
