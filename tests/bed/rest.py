"""A plain, blocking HTTP client for the bed's own needs. Independent of the client that the bed is there to test."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bed.errors import BedError

Json = dict[str, Any]
"""An object as the server writes it."""

TIMEOUT_SECONDS = 60.0


class Refused(BedError):
    """The server answered, with a status of 400 or above."""

    def __init__(self, request: str, response: http.client.HTTPResponse, body: bytes) -> None:
        super().__init__(f"{request}: {response.status} {body.decode(errors='replace')[:500]}")
        self.status = response.status
        self.headers = response.headers


@dataclass(frozen=True)
class Rest:
    """One server; a connection per request, so that a restarted server never meets an old one."""

    server: str
    tls: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> Json:
        """The decoded answer; `Refused` for an error status, `OSError` when there is no answer."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.raw(method, path, data, {"Content-Type": content, "Accept": "application/json"})
        decoded: Json = json.loads(answer)
        return decoded

    def raw(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        """The body of the answer as it came."""
        connection = self._connection()
        try:
            connection.request(method, path, body=body, headers=self.headers | (headers or {}))
            response = connection.getresponse()
            answer = response.read()
        except http.client.HTTPException as broken:
            raise ConnectionError(f"{method} {self.server}{path}: answer broken off") from broken
        finally:
            connection.close()
        if response.status >= 400:
            raise Refused(f"{method} {self.server}{path}", response, answer)
        return answer

    def get(self, path: str) -> Json:
        return self.request("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self.request("POST", path, body)

    def patch(self, path: str, body: Json) -> Json:
        """A JSON merge patch."""
        return self.request("PATCH", path, body, content="application/merge-patch+json")

    def apply(self, path: str, body: Json) -> Json:
        """A server-side apply in the bed's name."""
        return self.request(
            "PATCH", f"{path}?fieldManager=bed&force=true", body, content="application/apply-patch+yaml"
        )

    def delete(self, path: str) -> Json:
        return self.request("DELETE", path)

    def answers(self, path: str) -> bool:
        """Whether the server answers `path` with success."""
        try:
            self.raw("GET", path)
        except (OSError, Refused):
            return False
        return True

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self.server)
        host, port = url.hostname or "", url.port
        if url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self.tls)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
