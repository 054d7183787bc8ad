"""Who may read: whoever shows the token, in a header as Ray's own clients do, or in the cookie that `/login` sets.

The cookie is derived from the token and is the same at every replica; the token itself is not in it. Without a token,
on loopback, it is whoever calls this machine by its own name.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qs, quote

from starlette.datastructures import URL
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from raykeeper.history.answers import text_response
from raykeeper.history.loopback import is_loopback
from raykeeper.history.pages.assets import ASSETS_PREFIX
from raykeeper.history.pages.login import local_path, login_page

COOKIE = "raykeeper_access"
COOKIE_SECONDS = 7 * 24 * 3600
OPEN_PATHS = frozenset({"/readz", "/livez", "/metrics"})
MISSING = "Unauthorized: Missing authentication token"
WRONG = "Forbidden: Invalid authentication token"
FOREIGN_NAME = "this server answers to localhost alone; start it with --auth=token, or with --auth=none behind a proxy"
_FORM_LIMIT_BYTES = 16 * 1024


class TokenAccess:
    """An ASGI application that lets those through who know the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = hmac.digest(self._token, b"raykeeper history cookie", hashlib.sha256).hex()

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
        if cookie is not None and hmac.compare_digest(cookie.encode(), self._cookie.encode()):
            return None
        if "text/html" in connection.headers.get("accept", ""):
            return RedirectResponse(f"/login?next={quote(_path_of(connection.url))}", 303)
        return text_response(MISSING, 401)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return login_page(local_path(request.query_params.get("next", "/")))
        form = parse_qs((await _body(request)).decode(errors="replace"))
        next_path = local_path(form.get("next", ["/"])[0])
        if not self._is_token(form.get("token", [""])[0].strip()):
            return login_page(next_path, was_wrong=True)
        response = RedirectResponse(next_path, 303)
        is_secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, self._cookie, COOKIE_SECONDS, secure=is_secure, httponly=True, samesite="lax")
        return response

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


async def _body(request: Request) -> bytes:
    """A short form; of anything longer, nothing."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _FORM_LIMIT_BYTES:
            return b""
    return body


def _path_of(url: URL) -> str:
    return f"{url.path}?{url.query}" if url.query else url.path
