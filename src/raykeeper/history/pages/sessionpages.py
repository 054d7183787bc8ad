"""The table of our own pages below a session's prefix, beside those of Ray's dashboard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.asked import Asked
from raykeeper.history.keeper.report import report_body
from raykeeper.history.pages.report import report_page
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


SESSION_PAGES = (
    SessionPage("/report", get_report_page),
    SessionPage("/report/{job}", get_report_page),
)
