"""Authentication by token: in a header, as Ray's own clients send it, or in the cookie that `/login` sets.

The cookie is the time at which it ends, signed with the token: it is good at every replica, and the token itself is not
in it. Without a token, on loopback, it is whoever calls this machine by its own name. A page of another site may read
nothing in any case.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import parse_qs, quote

from starlette.datastructures import URL, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from raykeeper.history.http.pages.assets import ASSETS_PREFIX
from raykeeper.history.http.pages.login import local_path, login_page
from raykeeper.history.http.requests import is_of_other_site, short_body
from raykeeper.history.http.responses import text_response
from raykeeper.settings.addresses import is_loopback

COOKIE = "raykeeper_access"
COOKIE_SECONDS = 7 * 24 * 3600
OPEN_PATHS = frozenset({"/readz", "/livez", "/metrics"})
MISSING = "Unauthorized: Missing authentication token"
WRONG = "Forbidden: Invalid authentication token"
FOREIGN_NAME = "this server answers to localhost alone; start it with --auth=token, or with --auth=none behind a proxy"
FOREIGN_PAGE = "a page of another site may not read from here"
_TIME_DIGITS = 12


class OwnPagesOnly:
    """Refuses websockets of other sites' pages, which browsers allow, and keeps answers from being run as scripts.

    A page may only load as a script what says to be one; a log that is served as text says so and is believed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_unsniffed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        if scope["type"] == "websocket" and is_of_other_site(HTTPConnection(scope)):
            await WebSocket(scope, receive, send).send_denial_response(text_response(FOREIGN_PAGE, 403))
        else:
            await self._app(scope, receive, send_unsniffed)


class TokenAccess:
    """An ASGI application that lets those through who know the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        if scope["path"] == "/login" and scope["type"] == "http":
            await (await self._login(Request(scope, receive)))(scope, receive, send)
        elif (refusal := self._refusal(connection)) is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        """None for who may read. Codes and texts are Ray's, which its clients explain to their users."""
        shown = connection.headers.get("authorization") or connection.headers.get("x-ray-authorization")
        if shown is not None:
            scheme, _, token = shown.partition(" ")
            is_right = scheme.lower() == "bearer" and self._is_token(token.strip())
            return None if is_right else text_response(WRONG, 403)
        cookie = connection.cookies.get(COOKIE)
        if cookie is not None and self._is_good(cookie):
            return None
        if "text/html" in connection.headers.get("accept", ""):
            return RedirectResponse(f"/login?next={quote(_path_of(connection.url))}", 303)
        return text_response(MISSING, 401)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return login_page(local_path(request.query_params.get("next", "/")))
        form = parse_qs((await short_body(request)).decode(errors="replace"))
        next_path = local_path(form.get("next", ["/"])[0])
        if not self._is_token(form.get("token", [""])[0].strip()):
            return login_page(next_path, was_wrong=True)
        response = RedirectResponse(next_path, 303)
        # Who lies about the scheme makes a cookie that its own browser does not send.
        is_secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower())
        cookie = self._cookie(int(time.time()) + COOKIE_SECONDS)
        response.set_cookie(COOKIE, cookie, COOKIE_SECONDS, secure=is_secure, httponly=True, samesite="lax")
        return response

    def _cookie(self, ends_at: int) -> str:
        signed = hmac.digest(self._token, f"raykeeper history cookie until {ends_at}".encode(), hashlib.sha256)
        return f"{ends_at}-{signed.hex()}"

    def _is_good(self, cookie: str) -> bool:
        ends_at, _, _ = cookie.partition("-")
        if not (ends_at.isascii() and ends_at.isdecimal() and len(ends_at) <= _TIME_DIGITS):
            return False
        is_ours = hmac.compare_digest(cookie.encode(), self._cookie(int(ends_at)).encode())
        return is_ours and time.time() < int(ends_at)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token)


class LocalNamesOnly:
    """Refuses requests that come to loopback under a foreign name.

    Any web page can have its own name point to 127.0.0.1, and then read what a browser gets from there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and not is_loopback(_host_name(HTTPConnection(scope))):
            refusal = text_response(FOREIGN_NAME, 403)
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(refusal)
            else:
                await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    """Whether a path tells nothing of any session; the page that asks for the token is drawn with our style sheet."""
    return path in OPEN_PATHS or path.startswith(ASSETS_PREFIX)


def _host_name(connection: HTTPConnection) -> str:
    """The name a request calls us by, without its port."""
    host = connection.headers.get("host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host


def _path_of(url: URL) -> str:
    return f"{url.path}?{url.query}" if url.query else url.path
