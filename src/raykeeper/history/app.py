"""The server as one ASGI application: which path is answered by what, and what every answer has in common."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from raykeeper.history.access import LocalNamesOnly, TokenAccess
from raykeeper.history.addressing import SESSION_PATH, renew_cookies, session_of_cookies, session_of_path
from raykeeper.history.answers import not_found_response, text_response
from raykeeper.history.endpoints.kept import ROUTE as KEPT_ROUTE
from raykeeper.history.endpoints.kept import KeptAnswers
from raykeeper.history.endpoints.logs import list_logs
from raykeeper.history.endpoints.logs_archive import get_archive
from raykeeper.history.endpoints.logs_file import get_log
from raykeeper.history.endpoints.logs_job import get_job_logs, tail_job_logs
from raykeeper.history.endpoints.routes import ENDPOINTS, Endpoint
from raykeeper.history.failures import AS_RAY_TELLS, Telling
from raykeeper.history.keeper.operation import PREFIX as KEEPER
from raykeeper.history.keeper.problems import AS_PROBLEM, problem_response
from raykeeper.history.keeper.serving import (
    AS_OF_HEADER,
    no_operation,
    operation_handlers,
    session_operation_handlers,
)
from raykeeper.history.kuberayapi.clusters import enter_cluster, list_clusters
from raykeeper.history.kuberayapi.edge import kuberay_endpoints
from raykeeper.history.kuberayapi.telling import AS_KUBERAY_TELLS
from raykeeper.history.pages.assets import ASSETS_ROUTE, get_asset
from raykeeper.history.pages.failed import AS_PAGE
from raykeeper.history.pages.sessionpages import SESSION_PAGES, SessionPage
from raykeeper.history.pages.sitepages import SITE_PAGES, SitePage
from raykeeper.history.partial import progress_headers
from raykeeper.history.parts import Parts
from raykeeper.layout.keys import SessionId
from raykeeper.logs import Log

Handler = Callable[[Request], Awaitable[Response]]
SessionOf = Callable[[HTTPConnection], SessionId]

ONLY_READ = "operations answer GET and HEAD alone"

log = Log("raykeeper.history.app")


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
    live = parts.live
    kuberay: list[tuple[str, Handler]] = [
        ("/clusters", lambda request: list_clusters(request, live)),
        ("/enter_cluster/{namespace}/{kind}/{name}", lambda request: enter_cluster(request, live)),
        ("/enter_cluster/{namespace}/{kind}/{name}/{session}", lambda request: enter_cluster(request, live)),
    ]
    healthy = PlainTextResponse("ok")
    return [
        Route("/readz", healthy),
        Route("/livez", healthy),
        Route("/metrics", parts.metrics.answer),
        Route(ASSETS_ROUTE, get_asset),
        *(_route(parts, path, handler, AS_PROBLEM) for path, handler in operation_handlers(parts)),
        *(_route(parts, page.path, _site_page(parts, page), AS_PAGE) for page in SITE_PAGES),
        *(_route(parts, either, handler, name=path) for path, handler in kuberay for either in _with_and_without(path)),
    ]


def _by_path(parts: Parts) -> Mount:
    """Every session under its own prefix, with our pages and those of Ray's dashboard."""

    async def get_page(request: Request) -> Response:
        path = request.path_params["path"]
        if not path:
            await parts.check_known(session_of_path(request))
        return parts.dashboard.answer(path, request)

    own = [_route(parts, page.path, _session_page(parts, page), AS_PAGE) for page in SESSION_PAGES]
    kept = Endpoint(KEPT_ROUTE, KeptAnswers().get)
    last = [
        *_no_operations(parts),
        _route(parts, kept.path, _session_handler(parts, kept)),
        _route(parts, "/{path:path}", get_page, name="/s/{page}"),
    ]
    return Mount(SESSION_PATH, routes=[*_session_routes(parts), *own, *last])


def _session_routes(parts: Parts) -> Iterator[BaseRoute]:
    """All that Ray's dashboard answers about a session, in its words."""
    yield from _operation_routes(parts, session_of_path)
    for endpoint in (*_log_endpoints(parts), *ENDPOINTS):
        yield _route(parts, endpoint.path, _session_handler(parts, endpoint))
    yield _tail_route(parts, session_of_path)


def _by_cookies(parts: Parts) -> Iterator[BaseRoute]:
    """The same API at the root, for the session that KubeRay's cookies name and in KubeRay's words."""
    yield from _operation_routes(parts, session_of_cookies)
    for endpoint in kuberay_endpoints((*_log_endpoints(parts), *ENDPOINTS), parts.live):
        handler = _cookie_handler(parts, endpoint)
        for either in _with_and_without(endpoint.path):
            yield _route(parts, either, handler, AS_KUBERAY_TELLS, name=endpoint.path)
    yield _tail_route(parts, session_of_cookies)
    yield from _no_operations(parts)
    [kept] = kuberay_endpoints([Endpoint(KEPT_ROUTE, KeptAnswers().get)], parts.live)
    yield _route(parts, kept.path, _cookie_handler(parts, kept), AS_KUBERAY_TELLS)


def _with_and_without(path: str) -> tuple[str, str]:
    """The path without a slash behind it and with one: to KubeRay they are the same, and its clients use both."""
    bare = path.rstrip("/")
    return bare, f"{bare}/"


def _no_operations(parts: Parts) -> Iterator[BaseRoute]:
    yield _route(parts, f"{KEEPER}/{{rest:path}}", no_operation, AS_PROBLEM)


def _operation_routes(parts: Parts, session_of: SessionOf) -> Iterator[BaseRoute]:
    for path, handler in session_operation_handlers(parts, session_of):
        yield _route(parts, path, handler, AS_PROBLEM)


def _tail_route(parts: Parts, session_of: SessionOf) -> WebSocketRoute:
    async def tail(websocket: WebSocket) -> None:
        await _tail(websocket, parts, session_of)

    return WebSocketRoute("/api/jobs/{job_or_submission_id}/logs/tail", tail)


def _log_endpoints(parts: Parts) -> tuple[Endpoint, ...]:
    logs, heartbeats = parts.logs, parts.heartbeats
    return (
        Endpoint("/api/v0/logs", lambda request, asked: list_logs(request, asked, logs)),
        Endpoint("/api/v0/logs/archive", lambda request, asked: get_archive(request, asked, logs)),
        Endpoint("/api/v0/logs/{media_type}", lambda request, asked: get_log(request, asked, logs, heartbeats)),
        Endpoint("/api/jobs/{job_or_submission_id}/logs", lambda request, asked: get_job_logs(request, asked, logs)),
    )


def _site_page(parts: Parts, page: SitePage) -> Handler:
    return lambda request: page.answer(request, parts)


def _session_page(parts: Parts, page: SessionPage) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await parts.ask(session_of_path(request))
        response = await page.answer(request, asked, parts)
        response.headers[AS_OF_HEADER] = asked.session.as_of.isoformat()
        response.headers.update(progress_headers(asked.session))
        return response

    return handle


def _session_handler(parts: Parts, endpoint: Endpoint) -> Handler:
    return lambda request: _answer(parts, endpoint, request, session_of_path(request))


def _cookie_handler(parts: Parts, endpoint: Endpoint) -> Handler:
    async def handle(request: Request) -> Response:
        session = await parts.resolve(session_of_cookies(request))
        response = await _answer(parts, endpoint, request, session)
        renew_cookies(response, request)
        return response

    return handle


async def _answer(parts: Parts, endpoint: Endpoint, request: Request, session: SessionId) -> Response:
    asked = await parts.ask(session)
    response = await endpoint.answer(request, asked)
    if request.method == "HEAD" and isinstance(response, StreamingResponse):
        response = Response(status_code=response.status_code, headers=dict(response.headers))
    response.headers[AS_OF_HEADER] = asked.session.as_of.isoformat()
    response.headers.update(progress_headers(asked.session))
    return response


async def _tail(websocket: WebSocket, parts: Parts, session_of: SessionOf) -> None:
    """A websocket is refused as a request would be, before it is accepted."""
    try:
        session = await parts.resolve(session_of(websocket))
        await tail_job_logs(websocket, lambda: parts.ask(session), parts.logs, parts.heartbeats)
    except Exception as error:  # a request is a loop's top
        if websocket.application_state.name != "CONNECTING":
            raise
        await websocket.send_denial_response(_failure(parts, error, AS_RAY_TELLS))


def _route(parts: Parts, path: str, handler: Handler, telling: Telling = AS_RAY_TELLS, name: str = "") -> Route:
    """The handler at its path, measured; every error becomes an answer."""

    async def handle(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await handler(request)
        except Exception as error:  # a request is a loop's top
            response = _failure(parts, error, telling)
        parts.metrics.seconds.labels(name or path).observe(time.perf_counter() - began)
        parts.metrics.requests.labels(name or path, str(response.status_code)).inc()
        return response

    return Route(path, handle)


def _failure(parts: Parts, error: Exception, telling: Telling) -> Response:
    if (response := telling.expected(error)) is not None:
        return response
    parts.metrics.bugs.inc()
    log.exception("request failed by a bug")
    return telling.bug()


async def _as_ray_says(request: Request, error: Exception) -> Response:
    """What no route answers."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return not_found_response()
    is_ours = request.url.path.startswith(KEEPER)
    refusal = problem_response(ONLY_READ, status) if is_ours else text_response(f"{status}: Method Not Allowed", status)
    refusal.headers["Allow"] = "GET, HEAD"
    return refusal
