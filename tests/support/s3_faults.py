"""A proxy before an S3 server that answers some requests with 500, before or after the server acted on them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
from aiohttp import web
from yarl import URL

from support.scripted_server import served

_OWN_HEADERS = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
_HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive"}


class S3Faults:
    """What strikes is set by its attributes, at any time."""

    def __init__(self, target: str) -> None:
        self.url = ""
        self.path = ""
        """Only requests with this in their path or query are struck."""
        self.probability = 0.0
        self.times: int | None = None
        """How often it still strikes; None: for ever."""
        self.after_acting = False
        """Whether the server gets the request first, and only its answer is lost."""
        self.struck = 0
        self._target = target
        self._dice = random.Random(1)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[S3Faults]:
        """Serve at `url`."""
        session = aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=_OWN_HEADERS)
        async with session as self._session, served(self._handle) as self.url:
            yield self

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        is_struck = self._strikes(request.raw_path)
        if is_struck and not self.after_acting:
            await request.content.read()  # `request.read` takes 1 MB at most
            return web.Response(status=500)
        answer = await self._forwarded(request)
        return web.Response(status=500) if is_struck else answer

    def _strikes(self, path: str) -> bool:
        if self.times == 0 or self.path not in path or self._dice.random() >= self.probability:
            return False
        self.struck += 1
        if self.times is not None:
            self.times -= 1
        return True

    async def _forwarded(self, request: web.BaseRequest) -> web.Response:
        # The host is part of the signature, so it stays the one that the client meant.
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = URL(self._target + request.raw_path, encoded=True)
        async with self._session.request(
            request.method, url, headers=headers, data=BytesIO(await request.content.read())
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=answer.status, headers=kept, body=await answer.read())
