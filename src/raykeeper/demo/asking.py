"""JSON over HTTP from servers on this machine; never through a proxy, whatever the environment says."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from raykeeper.errors import Unavailable

LOOPBACK = "127.0.0.1"
TIMEOUT_SECONDS = 30.0  # Ray's own time-out for an answer of its state API


class Refused(Unavailable):
    """An answer with another status than 200."""

    def __init__(self, service: str, status: int, text: str) -> None:
        super().__init__(service, f"answered {status}: {text[:500]}")
        self.status = status


@dataclass(frozen=True)
class _Answer:
    text: str
    headers: dict[str, str]
    """By their names in lower case."""


@dataclass(frozen=True)
class LocalServer:
    """A server that listens on the loopback."""

    name: str
    port: int
    token: str = field(default="", repr=False)
    """Shown with every request, where the server asks for one."""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def get(self, path: str, query: list[tuple[str, str]] | None = None) -> Any:
        """The decoded answer. Raises Unavailable, also for any status but 200."""
        return json.loads(self._ask("GET", f"{path}?{urlencode(query)}" if query else path).text)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The decoded answer. Raises Unavailable, also for any status but 200."""
        return json.loads(self._ask("POST", path, json.dumps(body)).text)

    def header(self, path: str, name: str) -> str:
        """One header of the answer, empty where it is not there. Raises Unavailable."""
        return self._ask("GET", path).headers.get(name.lower(), "")

    def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200."""
        try:
            self._ask("GET", path)
        except Unavailable:
            return False
        return True

    @property
    def _headers(self) -> dict[str, str]:
        said = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Content-Type": "application/json", **said}

    def _ask(self, method: str, path: str, body: str | None = None) -> _Answer:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as exc:
            raise Unavailable(self.name, str(exc) or type(exc).__name__) from exc
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise Refused(self.name, answer.status, text)
        return _Answer(text, {key.lower(): value for key, value in answer.getheaders()})
