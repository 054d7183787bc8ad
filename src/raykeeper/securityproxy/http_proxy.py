"""HTTP through the proxy: who shows the token is passed on, as a stream."""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from raykeeper.logs import Log
from raykeeper.securityproxy.token import Token
from raykeeper.web.cors import Cors
from raykeeper.web.passing import (
    Taken,
    end_to_end,
    has_body,
    is_upgrade,
    pass_answer,
    pass_upgrade,
    peer_of,
    request_head,
    say_continue,
)
from raykeeper.web.targets import MalformedTarget, Target

PROBES: Final = frozenset({"/healthz", "/readyz", "/livez"})
"""Asked by load balancers, which have no token; they tell nothing. KubeRay's proxy refuses them."""
CONNECT_SECONDS: Final = 10.0
NO_PAGES: Final = Cors("")
_OWN: Final = frozenset({"host", "expect", "x-forwarded-host"})

log = Log("raykeeper.securityproxy.access")


class HttpProxy:
    """Passes requests on to one port of this machine."""

    def __init__(
        self, port: int, prefix: str, token: Token, session: aiohttp.ClientSession, cors: Cors = NO_PAGES
    ) -> None:
        self._port = port
        self._prefix = prefix
        self._token = token
        self._session = session
        self._cors = cors
        self.is_stopping = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            target = Target.parse(request.raw_path)
        except MalformedTarget:
            return web.Response(status=400, text="Bad Request\n")
        if self.is_stopping and target.path in PROBES:
            return web.Response(status=503)
        if self._is_guarded(request.method, target) and not self._token.admits(request.headers.get("Authorization")):
            return self._refused(request, target)
        try:
            response = await self._passed(request, target)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            return self._broken(request, target, exc)
        log.info("request", method=request.method, path=target.raw_path, status=response.status, peer=peer_of(request))
        return response

    def _refused(self, request: web.BaseRequest, target: Target) -> web.Response:
        """What somebody without the token is told.

        A browser that asks whether a page may call shows none. The answer is the API server's own rule, given here:
        V2 would pass the question on to a Ray head.
        """
        if self._cors.is_preflight(request.method, request.headers):
            return web.Response(status=204, headers=self._cors.preflight_headers(request.headers))
        log.info("request refused", method=request.method, path=target.raw_path, peer=peer_of(request))
        headers = {"WWW-Authenticate": "Bearer", **self._cors.answer_headers(request.headers)}
        return web.Response(status=401, text="Unauthorized\n", headers=headers)

    def _broken(self, request: web.BaseRequest, target: Target, cause: Exception) -> web.StreamResponse:
        """Either end went away: before anything was answered that can be said, later only the connection can end."""
        log.warning("request not passed on", path=target.raw_path, port=self._port, error=type(cause).__name__)
        if request.writer.output_size == 0:
            return web.Response(status=502, text="Bad Gateway\n")
        request.protocol.force_close()
        return Taken()

    def _is_guarded(self, method: str, target: Target) -> bool:
        """Whether the token is needed. Another spelling of a path leads to the same place, so all of them count."""
        if target.path in PROBES and method in ("GET", "HEAD"):
            return False
        spellings = (target.raw_path, target.path, target.clean_path)
        return any(spelling.startswith(self._prefix) for spelling in spellings)

    async def _passed(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        headers = self._headers(request)
        raw_target = f"{target.raw_path}?{target.raw_query}" if target.raw_query else target.raw_path
        if is_upgrade(request):
            return await self._upgraded(request, raw_target, headers)
        if has_body(request):
            await say_continue(request)
        async with self._session.request(
            request.method,
            URL(f"http://localhost:{self._port}{raw_target}", encoded=True),
            headers=headers,
            data=request.content if has_body(request) else None,
            allow_redirects=False,
            skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        ) as answer:
            kept = end_to_end(answer.headers.items())
            return await pass_answer(request, answer.status, kept, answer.content.iter_any())

    async def _upgraded(
        self, request: web.BaseRequest, raw_target: str, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        headers["Connection"], headers["Upgrade"] = "Upgrade", request.headers["Upgrade"]
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection("localhost", self._port)
        writer.write(request_head(request.method, raw_target, headers.items()))
        return await pass_upgrade(request, reader, writer)

    def _headers(self, request: web.BaseRequest) -> CIMultiDict[str]:
        headers = end_to_end(request.headers.items(), without=_OWN)
        if self._token.is_bearer(headers.get("Authorization", "")):
            del headers["Authorization"]  # V2 would show it to Kubernetes, which it is no business of
        headers["Host"] = f"localhost:{self._port}"
        headers["X-Forwarded-Host"] = request.headers.get("Host", "")
        before, peer = request.headers.get("X-Forwarded-For"), peer_of(request)
        headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
        return headers
