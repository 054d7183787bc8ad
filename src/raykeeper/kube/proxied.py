"""HTTP requests to servers inside the cluster, passed on by the API server: works from wherever it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from raykeeper.api.meta import ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.http.answers import Answer
from raykeeper.kube.http.requests import Query, Request, with_query

_PATH_CHARACTERS = "/:@!$&'()*+,;=~"  # those that mean nothing special in a path (RFC 3986), beside letters and digits


@dataclass(frozen=True)
class Backend:
    """A port of a Service or pod."""

    kind: Literal["services", "pods"]
    key: ObjectKey
    port: int | str
    """A number, or the name of a Service's port."""
    scheme: Literal["http", "https"] = "http"

    def path(self, path: str) -> str:
        """Where the API server takes requests for `path` of this backend."""
        prefix = "https:" if self.scheme == "https" else ""
        place = f"/api/v1/namespaces/{self.key.namespace}/{self.kind}/{prefix}{self.key.name}:{self.port}/proxy"
        return f"{place}/{quote(path.lstrip('/'), safe=_PATH_CHARACTERS)}"

    def __str__(self) -> str:
        return f"{self.kind} {self.key}:{self.port}"


async def ask(
    kube: Kube,
    backend: Backend,
    path: str,
    *,
    method: str = "GET",
    query: Query | None = None,
    body: bytes | None = None,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """What the backend answered, whatever its status.

    Raises `NotFound` where the pod, the Service or the Service's Endpoints are missing, `Unavailable` where nothing
    behind them answers: a 404 in the result is always the backend's own.
    """
    about, extra = f"{method} {path} of {backend}", tuple((headers or {}).items())
    place = with_query(backend.path(path), query or {})
    return await kube.relay(Request(method, place, about, body, content_type, extra))
