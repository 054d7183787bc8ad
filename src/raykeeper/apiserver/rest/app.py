"""The HTTP side as one handler: which path is answered by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0

from raykeeper.apiserver.errors import Code
from raykeeper.apiserver.rest.documents import document_response, page_response
from raykeeper.apiserver.rest.gateway import Gateway, error_response
from raykeeper.apiserver.v2.proxy import V2Proxy
from raykeeper.logs import Log
from raykeeper.settings.addresses import is_loopback
from raykeeper.web.cors import Cors
from raykeeper.web.targets import MalformedTarget, Target, redirect

FOREIGN_NAME = "this server answers to localhost alone; say by --auth who else may call"
FOREIGN_PAGE = "a page of another site may not call this server; see --cors-allow-origin"

_DOCUMENTS: Final[Mapping[str, Callable[[web.BaseRequest, Target], Awaitable[web.Response]]]] = {
    "/swagger/": document_response,
    "/swagger-ui": page_response,
    "/swagger-ui/": page_response,
}
"""What describes the API; a prefix ends with a slash."""

log = Log("raykeeper.apiserver.http")


class HttpApp:
    """Answers requests. `is_stopping` turns the probes to 503."""

    def __init__(
        self, gateway: Gateway, v2: V2Proxy | None, cors: Cors, registry: CollectorRegistry, *, is_local: bool
    ) -> None:
        """`is_local`: nobody was asked who may call, so only programs of this machine may."""
        self._gateway = gateway
        self._v2 = v2
        self._cors = cors
        self._registry = registry
        self._is_local = is_local
        self.is_stopping = False
        self.is_ready: Callable[[], str | None] = lambda: None
        """Says what is awaited, or None."""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._answer(request)
        except Exception:  # a request is a loop's top
            log.exception("request failed by a bug", method=request.method)
            response = error_response(500, Code.Internal, "internal error; the server's log has the reason")
        if not response.prepared:
            response.headers["Server"] = "raykeeper"  # instead of the versions of what it is made from
        return response

    async def answer_monitoring(self, request: web.BaseRequest) -> web.StreamResponse:
        """Probes and metrics, and nothing of the API: whoever reaches this needs no login."""
        handler = self._monitoring().get(request.path)
        response = web.Response(status=404) if handler is None else await handler()
        response.headers["Server"] = "raykeeper"
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            target = Target.parse(request.raw_path)
        except MalformedTarget:
            return web.Response(status=400, text="400 Bad Request")
        if (problem := self._foreign(request)) is not None:
            return error_response(403, Code.PermissionDenied, problem)
        if target.path != target.clean_path:
            return redirect(target.clean_path, target.raw_query)
        if (monitoring := self._monitoring().get(target.path)) is not None:
            return await monitoring()
        for prefix, document in _DOCUMENTS.items():
            if target.path == prefix or (prefix.endswith("/") and target.path.startswith(prefix)):
                return await document(request, target)
        return await self._api(request, target)

    def _monitoring(self) -> Mapping[str, Callable[[], Awaitable[web.Response]]]:
        """What kubelets and Prometheus ask for, without a login."""
        return {
            "/healthz": self._health,
            "/livez": self._health,
            "/readyz": self._ready,
            "/metrics": self._metrics,
        }

    async def _api(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        if self._cors.is_preflight(request.method, request.headers):
            return web.Response(status=204, headers=self._cors.preflight_headers(request.headers))
        granted = self._cors.answer_headers(request.headers)
        response = await self._v2.answer(request, target, granted) if self._v2 is not None else None
        if response is None:
            response = await self._gateway.answer(request, target)
        if not response.prepared:
            response.headers.update(granted)
        return response

    def _foreign(self, request: web.BaseRequest) -> str | None:
        """Why a request of this machine is refused although nobody has to log in: a web page made it.

        Any page can have its own name point to 127.0.0.1, and post to another site without being asked.
        """
        if not self._is_local:
            return None
        host = request.headers.get("Host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if not is_loopback(name):
            return FOREIGN_NAME
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host}".lower() and not self._cors.allows(origin):
            return FOREIGN_PAGE
        return None

    async def _health(self) -> web.Response:
        return web.Response(status=503 if self.is_stopping else 200)

    async def _ready(self) -> web.Response:
        problem = "the server is stopping" if self.is_stopping else self.is_ready()
        return web.Response(text="ok") if problem is None else web.Response(status=503, text=problem)

    async def _metrics(self) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_1_0_0})
