"""A dashboard whose answers a test writes, for what a real one does only when it is unwell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from support.conditions import POLL_SECONDS
from support.scripted_server import served

Answerer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
SESSION = "session_2026-11-15_20-09-58_472817_9"


class ScriptedHead:
    """Answers by path and query; a path that nobody scripted is a 404."""

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._answers: dict[str, Answerer] = {}
        self.say("/api/jobs/", [])

    def say(self, path: str, answer: Any, status: int = 200) -> None:
        """Answer with JSON from now on."""
        self.answer(path, as_json(answer, status))

    def answer(self, path: str, answerer: Answerer) -> None:
        self._answers[path] = answerer

    def asked(self, path: str) -> int:
        """How often the path was asked for."""
        return self.requests.count(path)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        self.headers.append(dict(request.headers))
        if request.path_qs in self._answers:
            return await self._answers[request.path_qs](request)
        if request.path_qs == "/api/version":
            facts = {"version": "4", "ray_version": "2.60.0", "ray_commit": "b7f4", "session_name": self.session}
            return web.json_response(facts)
        return web.Response(status=404, text="404: Not Found")


def as_json(answer: Any, status: int = 200) -> Answerer:
    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=json.dumps(answer).encode(), content_type="application/json")

    return respond


def as_text(text: str | bytes, status: int = 200, content_type: str = "text/plain") -> Answerer:
    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=text, content_type=content_type)

    return respond


def in_turn(*answerers: Answerer) -> Answerer:
    """One after the other; the last goes on for ever."""
    left = list(answerers)

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(request)

    return respond


async def stalled(request: web.BaseRequest) -> web.StreamResponse:
    """Takes the request and says nothing until the caller goes away."""
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110 - sets no event
        await asyncio.sleep(POLL_SECONDS)
    return web.Response()


async def cut_short(request: web.BaseRequest) -> web.StreamResponse:
    """Promises more than it sends."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"[1, 2")
    assert request.transport is not None
    request.transport.close()
    return response


def chunked(*pieces: bytes) -> Answerer:
    """A body in chunks, as Ray sends log files."""

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    return respond


@asynccontextmanager
async def scripted(head: ScriptedHead) -> AsyncIterator[str]:
    """The address at which the head listens."""
    async with served(head.handle) as url:
        yield url
