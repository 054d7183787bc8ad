"""Holding a write back at the last moment."""

from __future__ import annotations

import asyncio
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter

from raykeeper.kube.errors import NotLeading


class Fence(Protocol):
    """Says whether we may still write."""

    def check(self) -> None:
        """Raise `NotLeading` unless a write may be sent this very moment."""


class FencedBody(aiohttp.BytesPayload):
    """A request body that asks the fence at the last moment before it and its headers go to the socket.

    aiohttp holds the headers back until the body is written, so this is after the rate limit, after waiting for a
    connection, after TLS, and again for every attempt, also those aiohttp makes by itself on a dropped connection.
    """

    def __init__(self, body: bytes, fence: Fence) -> None:
        super().__init__(body)
        self._fence = fence

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        try:
            self._fence.check()
        except NotLeading:
            if isinstance(writer, StreamWriter):
                drop(writer.transport)
            raise
        await super().write_with_length(writer, content_length)


def drop(transport: asyncio.Transport | None) -> None:
    """End a connection at once. The polite way waits for the peer's goodbye, maybe longer than our event loop lives."""
    if transport is not None:
        transport.abort()
