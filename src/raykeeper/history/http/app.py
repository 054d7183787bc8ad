"""The server as one ASGI application: which path is answered by what, and what every answer has in common."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from raykeeper.history.http.access.audit import note_look
from raykeeper.history.http.access.callers import Authenticator, caller_of
from raykeeper.history.http.access.guard import METRICS_PATH, Everybody, Guard, LocalNamesOnly, OwnPagesOnly
from raykeeper.history.http.access.static_token import StaticToken
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
from raykeeper.history.http.pages.dashboard_bar import bar_of
from raykeeper.history.http.pages.failed import HTML_ERRORS, page_missing, wants_page
from raykeeper.history.http.pages.frame import with_account
from raykeeper.history.http.pages.table import SESSION_PAGES, SITE_PAGES, SessionPage
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

Handler = Callable[[Request, History], Awaitable[Response]]
"""Answers a request from the history as its caller may see it; nothing behind this line has another one."""
SessionOf = Callable[[HTTPConnection], SessionId]

ONLY_READ = "operations answer GET and HEAD alone"

log = Log("raykeeper.history.app")


def make_app(
    history: History, dashboard: DashboardFiles = NO_DASHBOARD, authenticator: Authenticator | None = None
) -> ASGIApp:
    """Everything the server answers. Without an authenticator, callers are asked as the access settings say."""
    return with_access(make_routes(history, dashboard), history.access, authenticator)


def with_access(app: ASGIApp, access: AccessSettings, authenticator: Authenticator | None = None) -> ASGIApp:
    """The application for those who may read; the same at every listener."""
    note = note_look if access.is_audited else None
    guarded: ASGIApp = Guard(app, authenticator or _authenticator_of(access), note)
    if access.answers_localhost_only:
        guarded = LocalNamesOnly(guarded)
    return OwnPagesOnly(guarded)


def make_routes(history: History, dashboard: DashboardFiles = NO_DASHBOARD) -> Starlette:
    """The table of all routes, behind the guard."""
    app = Starlette(routes=[*_own_routes(history), _by_path(history, dashboard), *_by_cookies(history)])
    app.router.redirect_slashes = False  # Ray does not redirect either, and a guess would cost a request
    app.add_exception_handler(HTTPException, _as_ray_says)
    return app


def _authenticator_of(access: AccessSettings) -> Authenticator:
    """For modes that need no clients. Raises ValueError for others, which must never be taken for none."""
    if access.mode not in ("none", "token"):
        raise ValueError(f"--auth={access.mode} needs an authenticator")
    return StaticToken(access.token) if access.mode == "token" else Everybody()


def _own_routes(whole: History) -> list[BaseRoute]:
    """What is about no session, or leads to one."""
    kuberay: list[tuple[str, Handler]] = [
        ("/clusters", list_clusters),
        ("/enter_cluster/{namespace}/{kind}/{name}", enter_cluster),
        ("/enter_cluster/{namespace}/{kind}/{name}/{session}", enter_cluster),
    ]
    healthy = PlainTextResponse("ok")

    async def tell_metrics(request: Request) -> Response:
        return whole.metrics.answer(names_namespaces=caller_of(request).visibility.is_everything)

    return [
        Route("/readz", healthy),
        Route("/livez", healthy),
        Route(METRICS_PATH, tell_metrics),
        Route(ASSETS_ROUTE, get_asset),
        *(_route(whole, path, handler, JSON_ERRORS) for path, handler in operation_handlers()),
        *(_route(whole, page.path, page.answer, HTML_ERRORS, method=page.method) for page in SITE_PAGES),
        *(_route(whole, either, handler, name=path) for path, handler in kuberay for either in _with_and_without(path)),
    ]


def _by_path(whole: History, dashboard: DashboardFiles) -> Mount:
    """Every session under its own prefix, with our pages and those of Ray's dashboard."""

    async def get_page(request: Request, history: History) -> Response:
        path = request.path_params["path"]
        if not path:
            await history.check_known(session_of_path(request))
        is_start = dashboard.is_start_page(path)
        bar = await bar_of(history, session_of_path(request)) if is_start else None
        response = dashboard.answer(path, request, bar)
        return page_missing(request) if response.status_code == 404 and wants_page(request) else response

    own = [_route(whole, page.path, _session_page(page), HTML_ERRORS) for page in SESSION_PAGES]
    polled = Endpoint(POLLED_ROUTE, PolledAnswers().get)
    last = [
        *_no_operations(whole),
        _route(whole, polled.path, _session_handler(polled)),
        _route(whole, "/{path:path}", get_page, name="/s/{page}"),
    ]
    return Mount(SESSION_PATH, routes=[*_session_routes(whole), *own, *last])


def _session_routes(whole: History) -> Iterator[BaseRoute]:
    """All that Ray's dashboard answers about a session, in its words."""
    yield from _operation_routes(whole, session_of_path)
    for endpoint in ENDPOINTS:
        yield _route(whole, endpoint.path, _session_handler(endpoint))
    yield _tail_route(whole, session_of_path)


def _by_cookies(whole: History) -> Iterator[BaseRoute]:
    """The same API at the root, for the session that KubeRay's cookies name and in KubeRay's words."""
    yield from _operation_routes(whole, session_of_cookies)
    is_live = whole.live.is_live
    for endpoint in kuberay_endpoints(ENDPOINTS, is_live):
        handler = _cookie_handler(endpoint)
        for either in _with_and_without(endpoint.path):
            yield _route(whole, either, handler, KUBERAY_ERRORS, name=endpoint.path)
    yield _tail_route(whole, session_of_cookies)
    yield from _no_operations(whole)
    [polled] = kuberay_endpoints([Endpoint(POLLED_ROUTE, PolledAnswers().get)], is_live)
    yield _route(whole, polled.path, _cookie_handler(polled), KUBERAY_ERRORS)


def _with_and_without(path: str) -> tuple[str, str]:
    """The path without a slash behind it and with one: to KubeRay they are the same, and its clients use both."""
    bare = path.rstrip("/")
    return bare, f"{bare}/"


def _no_operations(whole: History) -> Iterator[BaseRoute]:
    yield _route(whole, f"{KEEPER}/{{rest:path}}", no_operation, JSON_ERRORS)


def _operation_routes(whole: History, session_of: SessionOf) -> Iterator[BaseRoute]:
    for path, handler in session_operation_handlers(session_of):
        yield _route(whole, path, handler, JSON_ERRORS)


def _tail_route(whole: History, session_of: SessionOf) -> WebSocketRoute:
    async def tail(websocket: WebSocket) -> None:
        await _tail(websocket, seen_by_caller(websocket, whole), session_of)

    return WebSocketRoute("/api/jobs/{job_or_submission_id}/logs/tail", tail)


def _session_page(page: SessionPage) -> Handler:
    async def handle(request: Request, history: History) -> Response:
        context = await history.open(session_of_path(request))
        response = await page.answer(request, context, history)
        response.headers[AS_OF_HEADER] = context.session.as_of.isoformat()
        response.headers.update(progress_headers(context.session))
        return response

    return handle


def _session_handler(endpoint: Endpoint) -> Handler:
    return lambda request, history: _answer(history, endpoint, request, session_of_path(request))


def _cookie_handler(endpoint: Endpoint) -> Handler:
    async def handle(request: Request, history: History) -> Response:
        session = await history.resolve(session_of_cookies(request))
        response = await _answer(history, endpoint, request, session)
        renew_cookies(response, request)
        return response

    return handle


async def _answer(history: History, endpoint: Endpoint, request: Request, session: SessionId) -> Response:
    context = await history.open(session)
    response = await endpoint.answer(request, context)
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


def seen_by_caller(connection: HTTPConnection, whole: History) -> History:
    """The only way from the whole history to what answers a request."""
    return whole.seen_by(caller_of(connection).visibility)


def _route(
    whole: History,
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
            response = await handler(request, seen_by_caller(request, whole))
        except Exception as error:  # a request is a loop's top
            response = _failure(whole, error, error_format)
        if error_format is HTML_ERRORS:
            response = with_account(response, caller_of(request).name, can_sign_out=caller_of(request).can_sign_out)
        whole.metrics.seconds.labels(name or path).observe(time.perf_counter() - began)
        whole.metrics.requests.labels(name or path, str(response.status_code)).inc()
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
