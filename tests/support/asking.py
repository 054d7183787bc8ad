"""Ask an ASGI application without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope


@dataclass(frozen=True)
class Answered:
    """One whole answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    lines: tuple[tuple[str, str], ...] = ()
    """All headers, also those that came more than once."""

    def all_of(self, name: str) -> list[str]:
        """Every header of a name."""
        return [value for header, value in self.lines if header == name]

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def body(self) -> Any:
        """The JSON value, or the text where it is no JSON."""
        is_json = self.headers.get("content-type", "").startswith("application/json")
        return json.loads(self.content) if is_json else self.text


async def ask(
    app: ASGIApp, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Answered:
    """Send one request; `path` is as in a request line, with its query."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(_scope(path, method, headers or {}), receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    if method == "HEAD":
        content = b""  # a server does not send it
    lines = tuple((name.decode().lower(), value.decode()) for name, value in start["headers"])
    return Answered(start["status"], dict(lines), content, lines)


def _scope(path: str, method: str, headers: Mapping[str, str]) -> Scope:
    plain, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(plain),
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in {"Host": "history", **headers}.items()],
        "server": ("history", 80),
        "client": ("127.0.0.1", 1),
    }
