"""How somebody who may not come in hears of it: Ray's own words for programs, the way to sign in for people."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from raykeeper.history.http.pages.login import LOGIN_PATH
from raykeeper.history.http.responses import text_response

MISSING: Final = "Unauthorized: Missing authentication token"
WRONG: Final = "Forbidden: Invalid authentication token"
"""Ray's own words, which its clients explain to their users."""


def wants_to_sign_in(connection: HTTPConnection) -> bool:
    """Whether a browser asks for a page, and so can be sent to another one."""
    return connection.scope["type"] == "http" and "text/html" in connection.headers.get("accept", "")


def sent_to_login(connection: HTTPConnection) -> Response:
    url = connection.url
    path = f"{url.path}?{url.query}" if url.query else url.path
    return RedirectResponse(f"{LOGIN_PATH}?next={quote(path)}", 303)


def refused_program(words: str, status: int) -> Response:
    return text_response(words, status)
