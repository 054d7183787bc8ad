"""What stands in front of every path: it finds out who asks, notes it, and lets through whoever may come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from raykeeper.errors import Unavailable
from raykeeper.history.http.access.callers import ANYBODY, NOBODY, Authenticator, Caller, Verdict, set_caller
from raykeeper.history.http.pages.assets import ASSETS_PREFIX
from raykeeper.history.http.requests import host_name, is_of_other_site
from raykeeper.history.http.responses import text_response
from raykeeper.settings.addresses import is_loopback

METRICS_PATH: Final = "/metrics"
OPEN_PATHS: Final = frozenset({"/readz", "/livez", METRICS_PATH})
"""They tell nothing of any session. Metrics name namespaces to those who may see all of them."""
FOREIGN_NAME: Final = (
    "this server answers to localhost alone; start it with --auth=token, or with --auth=none behind a proxy"
)
FOREIGN_PAGE: Final = "a page of another site may not read from here"

Note = Callable[[HTTPConnection, Caller | None, int], None]
"""Notes one look: the request, who it was, the status of the answer."""


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
            await _refuse(text_response(FOREIGN_PAGE, 403), scope, receive, send)
        else:
            await self._app(scope, receive, send_unsniffed)


class Guard:
    """An ASGI application that lets those through whom the authenticator knows."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, note: Note | None = None) -> None:
        self._app = app
        self._authenticator = authenticator
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        path = connection.url.path
        if _is_open(path):
            set_caller(connection, await self._known(connection) if path == METRICS_PATH else NOBODY)
            await self._app(scope, receive, send)
        elif path in self._authenticator.own_paths and scope["type"] == "http":
            await (await self._own_answer(Request(scope, receive)))(scope, receive, send)
        else:
            await self._checked(connection, scope, receive, send)

    async def _known(self, connection: HTTPConnection) -> Caller:
        """Who asks for an open path; nobody, where that cannot be said."""
        try:
            return (await self._authenticator.check(connection)).caller or NOBODY
        except Unavailable:
            return NOBODY

    async def _own_answer(self, request: Request) -> Response:
        try:
            return await self._authenticator.answer(request)
        except Unavailable as exc:
            return _unavailable(exc)

    async def _checked(self, connection: HTTPConnection, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            verdict = await self._authenticator.check(connection)
        except Unavailable as exc:  # closed, not open: who it is cannot be found out
            verdict = Verdict(refusal=_unavailable(exc))

        async def send_noted(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                if verdict.caller is not ANYBODY:  # of what one may see, others get no copy
                    headers.setdefault("Cache-Control", "private, no-cache")
                for cookie in verdict.cookies:
                    headers.append("Set-Cookie", cookie)
                self._tell(connection, verdict.caller, message["status"])
            elif message["type"] == "websocket.accept":
                self._tell(connection, verdict.caller, 101)
            await send(message)

        if verdict.caller is None:
            await _refuse(verdict.refusal or text_response("Forbidden", 403), scope, receive, send_noted)
            return
        set_caller(connection, verdict.caller)
        await self._app(scope, receive, send_noted)

    def _tell(self, connection: HTTPConnection, caller: Caller | None, status: int) -> None:
        if self._note is not None:
            self._note(connection, caller, status)


class LocalNamesOnly:
    """Refuses requests that come to loopback under a foreign name.

    Any web page can have its own name point to 127.0.0.1, and then read what a browser gets from there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and not is_loopback(host_name(HTTPConnection(scope))):
            await _refuse(text_response(FOREIGN_NAME, 403), scope, receive, send)
        else:
            await self._app(scope, receive, send)


class Everybody:
    """Asks nobody."""

    own_paths: frozenset[str] = frozenset()

    async def answer(self, request: Request) -> Response:
        raise NotImplementedError(f"{request.url.path} is not ours")

    async def check(self, connection: HTTPConnection) -> Verdict:  # noqa: ARG002 - nothing of it is asked for
        return Verdict(ANYBODY)


def _is_open(path: str) -> bool:
    """Whether a path tells nothing of any session; the page that people sign in on is drawn with our style sheet."""
    return path in OPEN_PATHS or path.startswith(ASSETS_PREFIX)


def _unavailable(exc: Unavailable) -> Response:
    refusal = text_response(f"Service Unavailable: who you are cannot be checked now: {exc}", 503)
    refusal.headers["Retry-After"] = str(int(exc.retry_after or 5))
    return refusal


async def _refuse(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocket(scope, receive, send).send_denial_response(refusal)
    else:
        await refusal(scope, receive, send)
