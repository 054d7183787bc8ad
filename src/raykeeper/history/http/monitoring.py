"""The second listener, where monitoring is looked for: Grafana behind the server's own access, or our own pages.

Grafana keeps its own login. Nothing that lets somebody into this server is shown to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from yarl import URL

from raykeeper.history.http.pages.assets import ASSETS_PREFIX
from raykeeper.history.http.requests import is_of_other_site
from raykeeper.history.http.responses import text_response
from raykeeper.history.urls import MONITORING_PATH
from raykeeper.logs import Log
from raykeeper.web.passing import end_to_end

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 300.0
"""A slow query of Prometheus is waited for; a Grafana that says nothing for longer is given up."""
MOST_MESSAGE_BYTES: Final = 16 << 20
"""Of one message of a websocket."""
LOGIN_PATHS: Final = frozenset({"/login", "/login/start", "/auth/callback"})
"""Ours for who is not let in yet, Grafana's afterwards."""
NO_ANSWER: Final = "Grafana does not answer at the address that the history server was given (--grafana-url)"
_INSIDE: Final = "/raykeeper-grafana"
"""Before each path while access is decided: paths that are open in our own server are not open in Grafana."""
_OWN_COOKIES: Final = "raykeeper"
_NEVER_PASSED: Final = frozenset({"authorization", "x-ray-authorization", "cookie", "expect", "forwarded", "x-real-ip"})
_NEVER_PASSED_BEGINNINGS: Final = (
    *("x-forwarded-", "x-webauth-", "x-jwt-", "x-auth-", "x-authenticated-", "x-remote-", "remote-", "x-user"),
    *("x-email", "x-goog-", "x-amzn-oidc-", "x-ms-client-principal", "cf-access-", "x-grafana-id", "x-raykeeper-"),
)
"""Headers by which proxies tell Grafana who somebody is, however they are spelled; here they could only be a lie."""
BAD_PATH: Final = "this path leads out of Grafana"
_SAID_BY_SERVER: Final = frozenset({"date"})

Guard = Callable[[ASGIApp], ASGIApp]
"""Lays the server's access over an application."""

log = Log("raykeeper.history.monitoring")


class OwnMonitoring:
    """The whole server, whose start page here is the one about resources."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/":
            await RedirectResponse(MONITORING_PATH, 302)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class GuardedGrafana:
    """Grafana for those who may read from this server."""

    def __init__(self, grafana: ASGIApp, guard: Guard, own: ASGIApp) -> None:
        self._grafana = guard(_inside(grafana))
        self._guard = guard
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(ASSETS_PREFIX):
            await self._own(scope, receive, send)  # the style of the page that asks for the token
        elif path.startswith(f"{_INSIDE}/"):  # where the login leads back to
            query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
            await RedirectResponse(f"/{path.removeprefix(_INSIDE).lstrip('/')}{query}", 302)(scope, receive, send)
        elif path in LOGIN_PATHS and not await self._is_let_in(scope):
            await self._own(scope, receive, send)
        else:
            await self._grafana(_moved(scope), receive, send)

    async def _is_let_in(self, scope: Scope) -> bool:
        """Whether the guard lets this request pass; nothing of it is answered."""
        passed = asyncio.Event()

        async def notice(_scope: Scope, _receive: Receive, _send: Send) -> None:
            passed.set()

        async def no_body() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unsent(_message: Message) -> None:
            return

        await self._guard(notice)(_moved(scope), no_body, unsent)
        return passed.is_set()


def _moved(scope: Scope) -> Scope:
    raw = scope.get("raw_path") or scope["path"].encode()
    return {**scope, "path": _INSIDE + scope["path"], "raw_path": _INSIDE.encode() + raw}


def _inside(grafana: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path, raw = scope["path"].removeprefix(_INSIDE), scope["raw_path"].removeprefix(_INSIDE.encode())
        await grafana({**scope, "path": path, "raw_path": raw}, receive, send)

    return app


class GrafanaProxy:
    """Passes requests and websockets on to one Grafana, as streams."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address = address.rstrip("/")
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "websocket":
                await self._join(scope, receive, send)
            else:
                await self._pass(scope, receive, send)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            log.warning("request not passed on to grafana", path=scope["path"], cause=type(exc).__name__)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, until it is answered or its client has gone."""
        if _leads_out(scope):
            await text_response(BAD_PATH, 400)(scope, receive, send)
            return
        headers = passed_headers(scope, self._address)
        body = _Body(receive) if "content-length" in headers or _is_chunked(scope) else None
        passing = asyncio.ensure_future(self._exchange(scope, headers, body, send))
        leaving = asyncio.ensure_future(_gone(receive, body))
        try:
            await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                passing.cancel()
            await asyncio.gather(passing, return_exceptions=leaving.done())
        finally:
            for task in (passing, leaving):
                task.cancel()

    async def _exchange(self, scope: Scope, headers: CIMultiDict[str], body: _Body | None, send: Send) -> None:
        try:
            answer = await self._session.request(
                scope["method"],
                self._target(scope),
                headers=headers,
                data=body.pieces() if body else None,
                allow_redirects=False,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            log.warning("grafana does not answer", cause=type(exc).__name__)
            await text_response(NO_ANSWER, 502)(scope, _nothing_more, send)
            return
        async with answer:
            kept = end_to_end(answer.headers.items(), without=_SAID_BY_SERVER)
            raw = [(name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in kept.items()]
            await send({"type": "http.response.start", "status": answer.status, "headers": raw})
            async for piece in answer.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Both websockets become one, message by message, until either ends."""
        client, headers = WebSocket(scope, receive, send), passed_headers(scope, self._address)
        if _leads_out(scope):
            await client.send_denial_response(text_response(BAD_PATH, 400))
            return
        for name in [name for name in headers if name.lower().startswith("sec-websocket-")]:
            del headers[name]
        try:
            grafana = await self._session.ws_connect(
                self._target(scope),
                headers=headers,
                protocols=scope.get("subprotocols", ()),
                max_msg_size=MOST_MESSAGE_BYTES,
            )
        except aiohttp.WSServerHandshakeError as exc:
            await client.send_denial_response(text_response("Grafana refused the websocket", exc.status))
            return
        except (aiohttp.ClientError, TimeoutError, OSError):
            await client.send_denial_response(text_response(NO_ANSWER, 502))
            return
        async with grafana:
            await client.accept(subprotocol=grafana.protocol)
            ways = {asyncio.ensure_future(_to_grafana(client, grafana)), asyncio.ensure_future(_from(grafana, client))}
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        with suppress(RuntimeError):  # it may have been the client who ended it
            await client.close()

    def _target(self, scope: Scope) -> URL:
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        return URL(f"{self._address}/{path.lstrip('/')}{f'?{query}' if query else ''}", encoded=True)


async def _to_grafana(client: WebSocket, grafana: aiohttp.ClientWebSocketResponse) -> None:
    with suppress(WebSocketDisconnect, ConnectionError):
        while True:
            message = await client.receive()
            if message["type"] != "websocket.receive":
                return
            if (text := message.get("text")) is not None:
                await grafana.send_str(text)
            else:
                await grafana.send_bytes(message.get("bytes") or b"")


async def _from(grafana: aiohttp.ClientWebSocketResponse, client: WebSocket) -> None:
    with suppress(RuntimeError, ConnectionError):
        async for message in grafana:
            if message.type is aiohttp.WSMsgType.TEXT:
                await client.send_text(message.data)
            elif message.type is aiohttp.WSMsgType.BINARY:
                await client.send_bytes(message.data)


def _leads_out(scope: Scope) -> bool:
    """Whether a path has steps upwards: where Grafana is one of several at its host, they would lead to another.

    Browsers send none. A slash in a name may be spelled in any way that somebody behind us might understand.
    """
    path = scope["path"].replace("\\", "/").lower().replace("%2f", "/").replace("%5c", "/").replace("%2e", ".")
    return ".." in path.split("/")


def passed_headers(scope: Scope, address: str) -> CIMultiDict[str]:
    """What Grafana at this address is told: what the client says, without what is meant for us or would say who
    somebody is. Pure.
    """
    given, grafana = Headers(scope=scope), urlsplit(address)
    kept = end_to_end(given.items(), without=_NEVER_PASSED)
    for name in [name for name in kept if name.lower().replace("_", "-").startswith(_NEVER_PASSED_BEGINNINGS)]:
        del kept[name]
    # A proxy before Grafana has other hosts, too: which of them is asked is not for clients to say. Grafana compares
    # a page's origin with its host, so a page that came from here has to look like one of its own.
    kept["Host"] = grafana.netloc
    if "origin" in given and not is_of_other_site(HTTPConnection(scope)):
        kept["Origin"] = f"{grafana.scheme}://{grafana.netloc}"
    cookies = [part for line in given.getlist("cookie") for part in line.split(";") if not _is_own(part)]
    if cookies:
        kept["Cookie"] = "; ".join(part.strip() for part in cookies)
    kept["X-Forwarded-Host"] = given.get("host", "")
    kept["X-Forwarded-Proto"] = "https" if scope["scheme"] in ("https", "wss") else "http"
    if scope.get("client"):
        kept["X-Forwarded-For"] = scope["client"][0]
    return kept


def _is_own(cookie: str) -> bool:
    return cookie.partition("=")[0].strip().lower().removeprefix("__host-").startswith(_OWN_COOKIES)


def _is_chunked(scope: Scope) -> bool:
    return "transfer-encoding" in Headers(scope=scope)


class _Body:
    """A request's body as it comes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_read = asyncio.Event()

    async def pieces(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ConnectionResetError("the client has gone")
            if piece := message.get("body", b""):
                yield piece
            more = message.get("more_body", False)
        self.is_read.set()


async def _gone(receive: Receive, body: _Body | None) -> None:
    """Return once the client has gone; its body is read by somebody else first."""
    if body is not None:
        await body.is_read.wait()
    while (await receive())["type"] != "http.disconnect":
        continue


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


@asynccontextmanager
async def monitoring_app(grafana_url: str, own: ASGIApp, guard: Guard) -> AsyncIterator[ASGIApp]:
    """What the second listener answers; `own` is the whole server, with its access."""
    if not grafana_url:
        yield OwnMonitoring(own)
        return
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    jar = aiohttp.DummyCookieJar()  # cookies belong to clients, never to us
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=jar, auto_decompress=False) as session:
        yield GuardedGrafana(GrafanaProxy(grafana_url, session), guard, own)
