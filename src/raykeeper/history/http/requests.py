"""What a request may bring besides its path: whose page sent it, and a short form."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

_FORM_LIMIT_BYTES = 16 * 1024
_FORM_SECONDS = 10.0


def is_of_other_site(connection: HTTPConnection) -> bool:
    """Whether a browser asks for a page that came from elsewhere. Programs send no Origin."""
    origin = connection.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != connection.headers.get("host", "").lower()
    except ValueError:  # `http://[` is no address at all
        return True


async def short_body(request: Request) -> bytes:
    """A short form; of anything longer, or that takes longer, nothing."""
    body = b""
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > _FORM_LIMIT_BYTES:
                    return b""
    except TimeoutError:
        return b""
    return body
