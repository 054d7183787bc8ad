"""An HTTPS proxy in front of the API server that gives wrong answers, or none, to the requests it is told to."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from bed.control_plane import ControlPlane
from bed.faults.loop_thread import LoopThread
from bed.faults.rules import Fault, first_strike, status_body
from bed.keys import client_tls
from bed.pki import Authority
from bed.ports import free_port

LOOPBACK = "127.0.0.1"
# Each side frames its messages itself (RFC 9110 7.6.1); the users named in X-Remote-* are ours to say.
_NOT_FORWARDED = {"connection", "transfer-encoding", "keep-alive", "host", "x-remote-user", "x-remote-group"}


class HttpFaults(LoopThread):
    """Listens at `server` with a certificate of the cluster's own authority; `inject` and `clear` say what to do.

    Callers are known to the API server as if there were no proxy: bearer tokens pass through, and whoever shows a
    client certificate is named to the API server in the headers it trusts its front proxy with.
    """

    def __init__(self, plane: ControlPlane, dice: random.Random | None = None) -> None:
        super().__init__()
        self.port = free_port(LOOPBACK)
        self.server = f"https://{LOOPBACK}:{self.port}"
        self.requests: list[tuple[str, str]] = []
        """Method and path of every request that came, in order."""
        self.watch_lag_seconds = 0.0
        """So much later than they came, the lines of watches are passed on."""
        self._plane = plane
        self._dice = dice or random.Random(0)
        self._faults: list[Fault] = []

    def inject(self, fault: Fault) -> Fault:
        """Apply `fault` from now on, after those injected earlier; returns it, for its `hits`."""
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Leave all requests alone again."""
        self._faults.clear()

    async def _open(self) -> None:
        keys = self._plane.keys
        self._plain = _session(client_tls(keys))
        self._as_front_proxy = _session(client_tls(keys, keys.front_proxy))
        # Cancelled with its caller's connection, so that an abandoned watch is also ended towards the API server.
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None, handler_cancellation=True))
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, self.port, ssl_context=self._server_tls()).start()

    async def _close(self) -> None:
        await self._runner.cleanup()
        await self._plain.close()
        await self._as_front_proxy.close()

    def _server_tls(self) -> ssl.SSLContext:
        keys = self._plane.keys
        pair = Authority.load(keys.authority).issue("http-faults", sans=[LOOPBACK, "localhost"])
        files = pair.write(self._plane.folder / "pki", f"http-faults-{self.port}")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(keys.authority.certificate))
        context.load_cert_chain(files.certificate, files.key)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path))
        fault = first_strike(self._faults, request.method, request.raw_path, self._dice.random())
        try:
            if fault is None:
                return await self._forward(request)
            if fault.after_acting:
                await self._act(request)
        except aiohttp.ClientError:
            return _cut(request)  # the API server is down or went away: so does this connection
        return _cut(request) if fault.status is None else _injected(fault)

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        """Pass the API server's answer on as it comes, so that a watch stays a watch."""
        async with self._upstream(request) as upstream:
            response = web.StreamResponse(status=upstream.status, headers=_forwarded(upstream.headers))
            await response.prepare(request)
            is_watch = "watch=" in request.query_string
            async for chunk in self._late(upstream) if is_watch else upstream.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _late(self, upstream: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """What comes of a watch, in its order. It is read on while earlier pieces are held back."""
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def read() -> None:
            async for chunk in upstream.content.iter_any():
                held.put_nowait((loop.time() + self.watch_lag_seconds, chunk))
            held.put_nowait((0.0, b""))

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            try:
                while (piece := await held.get())[1]:
                    await asyncio.sleep(max(0.0, piece[0] - loop.time()))
                    yield piece[1]
            finally:
                reading.cancel()

    async def _act(self, request: web.BaseRequest) -> None:
        async with self._upstream(request) as upstream:
            await upstream.read()

    @asynccontextmanager
    async def _upstream(self, request: web.BaseRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        headers, session = _forwarded(request.headers), self._plain
        certificate = request.transport and request.transport.get_extra_info("peercert")
        if certificate and "Authorization" not in headers:
            session = self._as_front_proxy
            headers.extend(remote_user(certificate))
        url = URL(self._plane.server + request.raw_path, encoded=True)
        body = request.content if request.body_exists else None
        async with session.request(request.method, url, headers=headers, data=body, allow_redirects=False) as answer:
            yield answer


def remote_user(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers that name the user and groups of a client certificate (as `ssl` decodes it)."""
    names = {"commonName": "X-Remote-User", "organizationName": "X-Remote-Group"}
    subject = [part for relative_name in certificate["subject"] for part in relative_name]
    return [(names[key], value) for key, value in subject if key in names]


def _session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),  # a watch has no end
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
    )


def _forwarded(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _NOT_FORWARDED)


def _injected(fault: Fault) -> web.Response:
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return web.json_response(status_body(fault), status=fault.status or 500, headers=headers)


def _cut(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()  # goes nowhere: the connection is gone
