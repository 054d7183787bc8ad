"""A history server as clients ask it: by its address, or through the Kubernetes API to its Service."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.errors import Misconfigured, RaykeeperError, Unavailable

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube
    from raykeeper.kube.proxied import Backend

API = "/api/keeper/v1"
SERVICE_LABEL = "app.kubernetes.io/name=ray-history-server"
"""By which the Service of our chart is found."""
ANSWER_LIMIT = 64 << 20
_PATIENCE_SECONDS = 120.0
_PIECE = 1 << 16
_SAID_CHARS = 300


class NoHistory(RaykeeperError):
    """The history server knows nothing about what was asked; the text is its own sentence."""


class HistoryServer(Protocol):
    """Answers of one history server."""

    @property
    def address(self) -> str:
        """For messages."""

    def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises NoHistory for 404, and Unavailable."""


async def read(server: HistoryServer, path: str) -> bytes:
    """The whole answer. Raises NoHistory and Unavailable."""
    pieces = bytearray()
    async with contextlib.aclosing(server.stream(path)) as stream:
        async for piece in stream:
            pieces += piece
            if len(pieces) > ANSWER_LIMIT:
                raise Unavailable(server.address, f"its answer is larger than {ANSWER_LIMIT >> 20} MB")
    return bytes(pieces)


async def read_json(server: HistoryServer, path: str) -> JSON:
    """The answer as JSON. Raises NoHistory and Unavailable."""
    body = await read(server, path)
    try:
        answer = json.loads(body)
    except ValueError as exc:
        raise Unavailable(server.address, "its answer is not JSON; is this a history server?") from exc
    if not isinstance(answer, dict):
        raise Unavailable(server.address, "its answer is not a JSON object; is this a history server?")
    return answer


async def read_report(server: HistoryServer, kind: str, key: ObjectKey, clusters: tuple[str, ...] = ()) -> JSON:
    """Why an object failed: of a RayJob by its name; of others, of the newest session of their cluster.

    Raises NoHistory and Unavailable.
    """
    if kind == "RayJob":
        return await read_json(server, f"{API}/rayjobs/{_path(*key)}/report")
    names = clusters or ((key.name,) if kind == "RayCluster" else await _clusters_of_owner(server, key))
    for name in names:
        with contextlib.suppress(NoHistory):
            return await read_json(server, f"{API}/sessions/{_path(key.namespace, name, 'latest')}/report")
        with contextlib.suppress(NoHistory):
            return await read_json(server, f"{API}/clusters/{_path(key.namespace, name)}/report")
    raise NoHistory(f"{server.address} knows no session of {kind} {key}")


async def _clusters_of_owner(server: HistoryServer, key: ObjectKey) -> tuple[str, ...]:
    """Those that were made for a RayService, newest first, also if it is gone."""
    query = f"namespace={quote(key.namespace, safe='')}&owner={quote(key.name, safe='')}&limit=5"
    answer = await read_json(server, f"{API}/sessions?{query}")
    return tuple(dict.fromkeys(str(session["cluster"]) for session in answer.get("sessions", ())))


async def newest_session(server: HistoryServer, namespace: str, cluster: str) -> str:
    """Where the history server has Ray's own API of the session that started last. Raises NoHistory and Unavailable."""
    answer = await read_json(server, f"{API}/sessions/{_path(namespace, cluster, 'latest')}")
    return session_path(namespace, cluster, str(answer["session"]))


def session_path(namespace: str, cluster: str, session: str) -> str:
    """Where a history server has the pages and Ray's own API of a session."""
    return f"/s/{_path(namespace, cluster, session)}"


def headline_of(report: JSON) -> str:
    """What a person reads first; empty where nothing failed."""
    headline = report.get("headline") or {}
    text = str(headline.get("text", ""))
    what = str(headline.get("what", ""))
    return f"{text} ({what})" if text and what else text


def _path(*names: str) -> str:
    return "/".join(quote(name, safe="") for name in names)


class HistoryByUrl:
    """Asked at its address."""

    def __init__(self, url: str, token: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise Misconfigured("history server", url, "it must begin with http:// or https://")
        self.address = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=_PATIENCE_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
                session.get(self.address + path, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    _refuse(self.address, response.status, await response.content.read(_PIECE))
                async for piece in response.content.iter_chunked(_PIECE):
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise Unavailable(self.address, str(exc) or type(exc).__name__) from exc


class HistoryByProxy:
    """Asked through the Kubernetes API, by whoever may `get services/proxy` there."""

    def __init__(self, kube: Kube, backend: Backend, token: str = "") -> None:
        self._kube = kube
        self._backend = backend
        # The API server takes `Authorization` for its own; this header of Ray's clients passes.
        login = {"X-Ray-Authorization": f"Bearer {token}"} if token else {}
        self._headers = {"Accept-Encoding": "identity", **login}
        self.address = f"history server {backend.key}"

    async def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        from raykeeper.kube.http.requests import Request

        # The query is part of the path here, so the path is not quoted again.
        place = self._backend.path("/").rstrip("/") + path
        request = Request("GET", place, f"GET {path} of {self._backend}")
        async with self._kube.pass_on(request, self._headers, silence=_PATIENCE_SECONDS) as answer:
            if answer.status != 200:
                _refuse(self.address, answer.status, b"".join([piece async for piece in answer.pieces])[:_PIECE])
            async for piece in answer.pieces:
                yield piece


def _refuse(address: str, status: int, body: bytes) -> None:
    said = body.decode(errors="replace").strip()[:_SAID_CHARS]
    with contextlib.suppress(ValueError):
        answer: Any = json.loads(body)
        said = str(answer.get("error") or answer.get("message") or said) if isinstance(answer, dict) else said
    if status == 404:
        raise NoHistory(said or f"{address} does not know it")
    if status == 401:
        raise Unavailable(address, f"it wants a token: {said}")
    raise Unavailable(address, f"it answered {status}: {said}")


async def find_history(kube: Kube, token: str = "") -> HistoryServer | None:
    """The history server of our chart, wherever it is installed; None where there is none that we may see."""
    from raykeeper.kube.errors import ApiError
    from raykeeper.kube.proxied import Backend
    from raykeeper.kube.resources import SERVICES

    try:
        found = await kube.list(SERVICES, labels=SERVICE_LABEL)
    except ApiError:
        return None
    keys = sorted(service.key for service in found)
    return HistoryByProxy(kube, Backend("services", keys[0], "http"), token) if keys else None
