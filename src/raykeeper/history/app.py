"""The server as one ASGI application: which path is answered by what, and what every answer has in common."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from raykeeper.history.access import LocalNamesOnly, TokenAccess
from raykeeper.history.addressing import LATEST, SESSION_PATH, renew_cookies, session_of_cookies, session_of_path
from raykeeper.history.answers import not_found_response, text_response, trouble_response
from raykeeper.history.asked import Asked, Database, MetricsLinks, Session
from raykeeper.history.catalog import Catalog
from raykeeper.history.clusters import enter_cluster, list_clusters
from raykeeper.history.endpoints.logs import list_logs
from raykeeper.history.endpoints.logs_archive import get_archive
from raykeeper.history.endpoints.logs_file import get_log
from raykeeper.history.endpoints.logs_job import get_job_logs, tail_job_logs
from raykeeper.history.endpoints.routes import ENDPOINTS, Endpoint
from raykeeper.history.failures import failure_response
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.logs.logstore import LogStore
from raykeeper.history.metrics import HistoryMetrics
from raykeeper.history.pages.dashboard import DashboardFiles
from raykeeper.history.pages.listing import SessionPages
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import SessionId
from raykeeper.logs import Log

AS_OF_HEADER = "X-Raykeeper-As-Of"

Handler = Callable[[Request], Awaitable[Response]]
SessionOf = Callable[[HTTPConnection], SessionId]

log = Log("raykeeper.history.app")


class Sessions(Protocol):
    async def open(self, session: SessionId) -> Session:
        """The session, ready to be read."""
        ...


@dataclass(frozen=True)
class Parts:
    """What the server is made of; `main.py` builds the real ones."""

    catalog: Catalog
    heartbeats: Heartbeats
    sessions: Sessions
    database: Database
    logs: LogStore
    dashboard: DashboardFiles
    access: AccessSettings = field(default_factory=AccessSettings)
    links: MetricsLinks = field(default_factory=MetricsLinks)
    metrics: HistoryMetrics = field(default_factory=HistoryMetrics)

    async def ask(self, session: SessionId) -> Asked:
        """The session and the means to read it. Raises SessionMissing."""
        await self.check_known(session)
        return Asked(await self.sessions.open(session), self.database, self.logs, self.links)

    async def resolve(self, session: SessionId) -> SessionId:
        """The session that `latest` means now; a websocket is not redirected to it."""
        if session.session != LATEST:
            return session
        return await self.catalog.newest_of_cluster(session.namespace, session.cluster) or session

    async def check_known(self, session: SessionId) -> None:
        """Raises SessionMissing where the store has nothing of the session."""
        if not await self.catalog.is_known(session):
            raise SessionMissing(session)


def make_app(parts: Parts) -> ASGIApp:
    """Everything the server answers."""
    app = Starlette(routes=[*_own_routes(parts), _by_path(parts), *_by_cookies(parts)])
    app.router.redirect_slashes = False  # Ray does not redirect either, and a guess would cost a request
    app.add_exception_handler(HTTPException, _as_ray_says)
    if parts.access.mode == "token":
        return TokenAccess(app, parts.access.token)
    return LocalNamesOnly(app) if parts.access.answers_localhost_only else app


def _own_routes(parts: Parts) -> list[BaseRoute]:
    """What is about no session, or leads to one."""
    pages, catalog = SessionPages(parts.catalog, parts.heartbeats, parts.access), parts.catalog
    handlers: list[tuple[str, Handler]] = [
        ("/", pages.list_sessions),
        ("/select_cluster", pages.list_sessions),
        ("/clusters", lambda request: list_clusters(request, catalog)),
        ("/enter_cluster/{namespace}/{kind}/{name}", lambda request: enter_cluster(request, catalog)),
        ("/enter_cluster/{namespace}/{kind}/{name}/{session}", lambda request: enter_cluster(request, catalog)),
        (f"/s/{{namespace}}/{{cluster}}/{LATEST}", pages.redirect_to_latest),
        (f"/s/{{namespace}}/{{cluster}}/{LATEST}/{{rest:path}}", pages.redirect_to_latest),
        (SESSION_PATH, pages.add_slash),
    ]
    routes: list[BaseRoute] = [Route(path, _guarded(parts, path, handler)) for path, handler in handlers]
    healthy = PlainTextResponse("ok")
    return [
        Route("/readz", healthy),
        Route("/livez", healthy),
        Route("/metrics", parts.metrics.answer),
        *routes,
    ]


def _by_path(parts: Parts) -> Mount:
    """Every session under its own prefix, with the pages of Ray's dashboard."""

    async def get_page(request: Request) -> Response:
        path = request.path_params["path"]
        if not path:
            await parts.check_known(session_of_path(request))
        return parts.dashboard.answer(path, request)

    routes = list(_session_routes(parts, session_of_path, is_by_cookies=False))
    return Mount(SESSION_PATH, routes=[*routes, Route("/{path:path}", _guarded(parts, "/s/{page}", get_page))])


def _by_cookies(parts: Parts) -> Iterator[BaseRoute]:
    """The same API at the root, for the session that KubeRay's cookies name."""
    return _session_routes(parts, session_of_cookies, is_by_cookies=True)


def _session_routes(parts: Parts, session_of: SessionOf, *, is_by_cookies: bool) -> Iterator[BaseRoute]:
    for endpoint in (*_log_endpoints(parts), *ENDPOINTS):
        yield Route(
            endpoint.path,
            _guarded(parts, endpoint.path, _session_handler(parts, endpoint, session_of, is_by_cookies=is_by_cookies)),
        )

    async def tail(websocket: WebSocket) -> None:
        await _tail(websocket, parts, session_of)

    yield WebSocketRoute("/api/jobs/{job_or_submission_id}/logs/tail", tail)


def _log_endpoints(parts: Parts) -> tuple[Endpoint, ...]:
    logs, heartbeats = parts.logs, parts.heartbeats
    return (
        Endpoint("/api/v0/logs", lambda request, asked: list_logs(request, asked, logs)),
        Endpoint("/api/v0/logs/archive", lambda request, asked: get_archive(request, asked, logs)),
        Endpoint("/api/v0/logs/{media_type}", lambda request, asked: get_log(request, asked, logs, heartbeats)),
        Endpoint("/api/jobs/{job_or_submission_id}/logs", lambda request, asked: get_job_logs(request, asked, logs)),
    )


def _session_handler(parts: Parts, endpoint: Endpoint, session_of: SessionOf, *, is_by_cookies: bool) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await parts.ask(session_of(request))
        response = await endpoint.answer(request, asked)
        if request.method == "HEAD" and isinstance(response, StreamingResponse):
            response = Response(status_code=response.status_code, headers=dict(response.headers))
        response.headers[AS_OF_HEADER] = asked.session.as_of.isoformat()
        if is_by_cookies:
            renew_cookies(response, request)
        return response

    return handle


async def _tail(websocket: WebSocket, parts: Parts, session_of: SessionOf) -> None:
    """A websocket is refused as a request would be, before it is accepted."""
    try:
        session = await parts.resolve(session_of(websocket))
        await tail_job_logs(websocket, lambda: parts.ask(session), parts.logs, parts.heartbeats)
    except Exception as error:  # a request is a loop's top
        if websocket.application_state.name != "CONNECTING":
            raise
        await websocket.send_denial_response(_failure(parts, error))


def _guarded(parts: Parts, route: str, handler: Handler) -> Handler:
    """The handler, measured; every error becomes an answer."""

    async def handle(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await handler(request)
        except Exception as error:  # a request is a loop's top
            response = _failure(parts, error)
        parts.metrics.seconds.labels(route).observe(time.perf_counter() - began)
        parts.metrics.requests.labels(route, str(response.status_code)).inc()
        return response

    return handle


def _failure(parts: Parts, error: Exception) -> Response:
    if (response := failure_response(error)) is not None:
        return response
    parts.metrics.bugs.inc()
    log.exception("request failed by a bug")
    return trouble_response()


async def _as_ray_says(_: Request, error: Exception) -> Response:
    """What no route answers."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return not_found_response() if status == 404 else text_response(f"{status}: Method Not Allowed", status)
