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


def host_name(connection: HTTPConnection) -> str:
    """The name a request calls us by, without its port."""
    host = connection.headers.get("host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host


def is_by_tls(connection: HTTPConnection) -> bool:
    """Whether it came by TLS, here or at a proxy. Who lies about it gets a cookie that its browser does not send."""
    return "https" in (connection.url.scheme, connection.headers.get("x-forwarded-proto", "").lower())


def bearer_of(connection: HTTPConnection) -> str | None:
    """The token in the headers that Ray's clients send; None without one, empty for any other kind of header."""
    shown = connection.headers.get("authorization") or connection.headers.get("x-ray-authorization")
    if shown is None:
        return None
    scheme, _, token = shown.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
