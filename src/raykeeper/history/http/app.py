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

from raykeeper.history.http.auth import LocalNamesOnly, OwnPagesOnly, TokenAccess
from raykeeper.history.http.errors import RAY_ERRORS, ErrorFormat
from raykeeper.history.http.keeper_api.operation import JSON_ERRORS, problem_response
from raykeeper.history.http.keeper_api.operation import PREFIX as KEEPER
from raykeeper.history.http.keeper_api.serving import (
    AS_OF_HEADER,
    no_operation,
    operation_handlers,
    session_operation_handlers,
)
from raykeeper.history.http.kuberay_api.clusters import enter_cluster, list_clusters
from raykeeper.history.http.kuberay_api.differences import KUBERAY_ERRORS, kuberay_endpoints
from raykeeper.history.http.pages.assets import ASSETS_ROUTE, get_asset
from raykeeper.history.http.pages.dashboard import NO_DASHBOARD, DashboardFiles
from raykeeper.history.http.pages.failed import HTML_ERRORS, page_missing, wants_page
from raykeeper.history.http.pages.table import SESSION_PAGES, SITE_PAGES, SessionPage, SitePage
from raykeeper.history.http.ray_api.logs_job import tail_job_logs
from raykeeper.history.http.ray_api.polled_passthrough import ROUTE as POLLED_ROUTE
from raykeeper.history.http.ray_api.polled_passthrough import PolledAnswers
from raykeeper.history.http.ray_api.routes import ENDPOINTS, Endpoint
from raykeeper.history.http.responses import not_found_response, progress_headers, text_response
from raykeeper.history.http.routing import SESSION_PATH, renew_cookies, session_of_cookies, session_of_path
from raykeeper.history.query.history import History
from raykeeper.history.settings import AccessSettings
from raykeeper.layout.keys import SessionId
from raykeeper.logs import Log

Handler = Callable[[Request], Awaitable[Response]]
SessionOf = Callable[[HTTPConnection], SessionId]

ONLY_READ = "operations answer GET and HEAD alone"

log = Log("raykeeper.history.app")


def make_app(history: History, dashboard: DashboardFiles = NO_DASHBOARD) -> ASGIApp:
    """Everything the server answers."""
    app = Starlette(routes=[*_own_routes(history), _by_path(history, dashboard), *_by_cookies(history)])
    app.router.redirect_slashes = False  # Ray does not redirect either, and a guess would cost a request
    app.add_exception_handler(HTTPException, _as_ray_says)
    return with_access(app, history.access)


def with_access(app: ASGIApp, access: AccessSettings) -> ASGIApp:
    """The application for those who may read; the same at every listener."""
    return OwnPagesOnly(_of_mode(app, access))


def _of_mode(app: ASGIApp, access: AccessSettings) -> ASGIApp:
    if access.mode == "token":
        return TokenAccess(app, access.token)
    return LocalNamesOnly(app) if access.answers_localhost_only else app


def _own_routes(history: History) -> list[BaseRoute]:
    """What is about no session, or leads to one."""
    live = history.live
    kuberay: list[tuple[str, Handler]] = [
        ("/clusters", lambda request: list_clusters(request, live)),
        ("/enter_cluster/{namespace}/{kind}/{name}", lambda request: enter_cluster(request, live)),
        ("/enter_cluster/{namespace}/{kind}/{name}/{session}", lambda request: enter_cluster(request, live)),
    ]
    healthy = PlainTextResponse("ok")
    return [
        Route("/readz", healthy),
        Route("/livez", healthy),
        Route("/metrics", history.metrics.answer),
        Route(ASSETS_ROUTE, get_asset),
        *(_route(history, path, handler, JSON_ERRORS) for path, handler in operation_handlers(history)),
        *(
            _route(history, page.path, _site_page(history, page), HTML_ERRORS, method=page.method)
            for page in SITE_PAGES
        ),
        *(
            _route(history, either, handler, name=path)
            for path, handler in kuberay
            for either in _with_and_without(path)
        ),
    ]


def _by_path(history: History, dashboard: DashboardFiles) -> Mount:
    """Every session under its own prefix, with our pages and those of Ray's dashboard."""

    async def get_page(request: Request) -> Response:
        path = request.path_params["path"]
        if not path:
            await history.check_known(session_of_path(request))
        response = dashboard.answer(path, request)
        return page_missing(request) if response.status_code == 404 and wants_page(request) else response

    own = [_route(history, page.path, _session_page(history, page), HTML_ERRORS) for page in SESSION_PAGES]
    polled = Endpoint(POLLED_ROUTE, PolledAnswers().get)
    last = [
        *_no_operations(history),
        _route(history, polled.path, _session_handler(history, polled)),
        _route(history, "/{path:path}", get_page, name="/s/{page}"),
    ]
    return Mount(SESSION_PATH, routes=[*_session_routes(history), *own, *last])


def _session_routes(history: History) -> Iterator[BaseRoute]:
    """All that Ray's dashboard answers about a session, in its words."""
    yield from _operation_routes(history, session_of_path)
    for endpoint in ENDPOINTS:
        yield _route(history, endpoint.path, _session_handler(history, endpoint))
    yield _tail_route(history, session_of_path)


def _by_cookies(history: History) -> Iterator[BaseRoute]:
    """The same API at the root, for the session that KubeRay's cookies name and in KubeRay's words."""
    yield from _operation_routes(history, session_of_cookies)
    for endpoint in kuberay_endpoints(ENDPOINTS, history.live):
        handler = _cookie_handler(history, endpoint)
        for either in _with_and_without(endpoint.path):
            yield _route(history, either, handler, KUBERAY_ERRORS, name=endpoint.path)
    yield _tail_route(history, session_of_cookies)
    yield from _no_operations(history)
    [polled] = kuberay_endpoints([Endpoint(POLLED_ROUTE, PolledAnswers().get)], history.live)
    yield _route(history, polled.path, _cookie_handler(history, polled), KUBERAY_ERRORS)


def _with_and_without(path: str) -> tuple[str, str]:
    """The path without a slash behind it and with one: to KubeRay they are the same, and its clients use both."""
    bare = path.rstrip("/")
    return bare, f"{bare}/"


def _no_operations(history: History) -> Iterator[BaseRoute]:
    yield _route(history, f"{KEEPER}/{{rest:path}}", no_operation, JSON_ERRORS)


def _operation_routes(history: History, session_of: SessionOf) -> Iterator[BaseRoute]:
    for path, handler in session_operation_handlers(history, session_of):
        yield _route(history, path, handler, JSON_ERRORS)


def _tail_route(history: History, session_of: SessionOf) -> WebSocketRoute:
    async def tail(websocket: WebSocket) -> None:
        await _tail(websocket, history, session_of)

    return WebSocketRoute("/api/jobs/{job_or_submission_id}/logs/tail", tail)


def _site_page(history: History, page: SitePage) -> Handler:
    return lambda request: page.answer(request, history)


def _session_page(history: History, page: SessionPage) -> Handler:
    async def handle(request: Request) -> Response:
        context = await history.open(session_of_path(request))
        response = await page.answer(request, context, history)
        response.headers[AS_OF_HEADER] = context.session.as_of.isoformat()
        response.headers.update(progress_headers(context.session))
        return response

    return handle


def _session_handler(history: History, endpoint: Endpoint) -> Handler:
    return lambda request: _answer(history, endpoint, request, session_of_path(request))


def _cookie_handler(history: History, endpoint: Endpoint) -> Handler:
    async def handle(request: Request) -> Response:
        session = await history.resolve(session_of_cookies(request))
        response = await _answer(history, endpoint, request, session)
        renew_cookies(response, request)
        return response

    return handle


async def _answer(history: History, endpoint: Endpoint, request: Request, session: SessionId) -> Response:
    context = await history.open(session)
    response = await endpoint.answer(request, context)
    if request.method == "HEAD" and isinstance(response, StreamingResponse):
        response = Response(status_code=response.status_code, headers=dict(response.headers))
    response.headers[AS_OF_HEADER] = context.session.as_of.isoformat()
    response.headers.update(progress_headers(context.session))
    return response


async def _tail(websocket: WebSocket, history: History, session_of: SessionOf) -> None:
    """A websocket is refused as a request would be, before it is accepted."""
    try:
        session = await history.resolve(session_of(websocket))
        await tail_job_logs(websocket, lambda: history.open(session))
    except Exception as error:  # a request is a loop's top
        if websocket.application_state.name != "CONNECTING":
            raise
        await websocket.send_denial_response(_failure(history, error, RAY_ERRORS))


def _route(
    history: History,
    path: str,
    handler: Handler,
    error_format: ErrorFormat = RAY_ERRORS,
    name: str = "",
    method: str = "GET",
) -> Route:
    """The handler at its path, measured; every error becomes an answer."""

    async def handle(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await handler(request)
        except Exception as error:  # a request is a loop's top
            response = _failure(history, error, error_format)
        history.metrics.seconds.labels(name or path).observe(time.perf_counter() - began)
        history.metrics.requests.labels(name or path, str(response.status_code)).inc()
        return response

    return Route(path, handle, methods=[method])  # with GET comes HEAD


def _failure(history: History, error: Exception, error_format: ErrorFormat) -> Response:
    if (response := error_format.expected(error)) is not None:
        return response
    history.metrics.bugs.inc()
    log.exception("request failed by a bug")
    return error_format.bug()


async def _as_ray_says(request: Request, error: Exception) -> Response:
    """What no route answers: a page for people, Ray's own words for programs."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return page_missing(request) if wants_page(request) else not_found_response()
    is_ours = request.url.path.startswith(KEEPER)
    refusal = problem_response(ONLY_READ, status) if is_ours else text_response(f"{status}: Method Not Allowed", status)
    refusal.headers["Allow"] = "GET, HEAD"
    return refusal
