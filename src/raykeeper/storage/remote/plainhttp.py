"""One request by the standard library, for the few that opendal cannot make. `http.client` is imported when needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from raykeeper.storage.backends.backend import HttpRequest


@dataclass(frozen=True)
class HttpAnswer:
    """What came back."""

    status: int
    body: bytes


async def send(request: HttpRequest, seconds: float) -> HttpAnswer:
    """The server's answer. Raises `OSError` when there is none in time."""
    return await asyncio.to_thread(_send, request, seconds)


def _send(request: HttpRequest, seconds: float) -> HttpAnswer:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    url = urlsplit(request.url)
    make = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = make(url.hostname or "", url.port, timeout=seconds)
    target = f"{url.path}?{url.query}" if url.query else url.path
    try:
        connection.request(request.method, target, body=request.body, headers=dict(request.headers))
        response = connection.getresponse()
        return HttpAnswer(response.status, response.read())
    except HTTPException as exc:
        raise ConnectionError("the answer broke off") from exc
    finally:
        connection.close()
