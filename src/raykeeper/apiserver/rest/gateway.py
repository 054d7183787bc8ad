"""Calls over HTTP: the route of a request, its answer as JSON, and errors as KubeRay's gateway writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from raykeeper.apiserver.dispatch import Dispatcher, Origin
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.rest.protojson import to_json
from raykeeper.apiserver.rest.routes import Route, routes_of
from raykeeper.apiserver.services.table import Call
from raykeeper.web.listener import BODY_BYTES, TooLarge, read_body
from raykeeper.web.passing import peer_of
from raykeeper.web.targets import MOST_PARAMETERS, Target, parse_query

HTTP_STATUS: Final[Mapping[Code, int]] = {
    Code.OK: 200,
    Code.Canceled: 499,
    Code.Unknown: 500,
    Code.InvalidArgument: 400,
    Code.DeadlineExceeded: 504,
    Code.NotFound: 404,
    Code.AlreadyExists: 409,
    Code.PermissionDenied: 403,
    Code.ResourceExhausted: 429,
    Code.FailedPrecondition: 400,
    Code.Aborted: 409,
    Code.OutOfRange: 400,
    Code.Unimplemented: 501,
    Code.Internal: 500,
    Code.Unavailable: 503,
    Code.DataLoss: 500,
    Code.Unauthenticated: 401,
}
VIEW: Final = "view"
FULL: Final = "full"
"""`?view=full` has the fields in the answer that KubeRay does not have."""
_FORM: Final = "application/x-www-form-urlencoded"
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNIT_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


class Gateway:
    """Answers every path of V1; anything else is not found."""

    def __init__(self, calls: Sequence[Call], dispatcher: Dispatcher) -> None:
        self._routes = routes_of(calls)
        self._dispatcher = dispatcher

    async def answer(self, request: web.BaseRequest, target: Target) -> web.Response:
        try:
            return await self._answer(request, target)
        except CallFailed as failure:
            return failure_response(failure)
        except TooLarge:
            return error_response(413, Code.InvalidArgument, f"the body is larger than {BODY_BYTES} bytes")
        except TimeoutError:
            return error_response(408, Code.DeadlineExceeded, "the body did not arrive in time")

    async def _answer(self, request: web.BaseRequest, target: Target) -> web.Response:
        method, query, is_form = request.method, _query(target.raw_query), _is_form(request)
        route, variables = self._find(method, target.segments)
        if route is None and not is_form:
            raise self._no_route(target.segments)
        origin = Origin("http", peer_of(request), request.headers.get("Authorization"), _seconds(request))
        body = b""
        if method not in ("GET", "HEAD"):
            await self._dispatcher.admit(origin)
            body = await read_body(request)
        if is_form and (route is None or "X-HTTP-Method-Override" in request.headers):
            # A GET whose query is too long for a URL may be sent as a form.
            method = request.headers.get("X-HTTP-Method-Override", "GET").upper()
            query, body = [*query, *_query(body.decode("latin-1"))], b""
            route, variables = self._find(method, target.segments)
        if route is None:
            raise self._no_route(target.segments)
        message = route.request(variables, query, body)
        answer = await self._dispatcher.answer(route.call, message, origin)
        headers = {"Grpc-Metadata-Content-Type": "application/grpc"}
        is_full = dict(query).get(VIEW) == FULL
        return json_response(200, to_json(answer, with_additions=is_full), headers)

    def _find(self, method: str, segments: Sequence[str]) -> tuple[Route | None, Mapping[str, str]]:
        for route in self._routes:
            if route.verb == method and (variables := route.match(segments)) is not None:
                return route, variables
        return None, {}

    def _no_route(self, segments: Sequence[str]) -> CallFailed:
        if any(route.match(segments) is not None for route in self._routes):
            return CallFailed(Code.Unimplemented, HTTPStatus.METHOD_NOT_ALLOWED.phrase)
        return CallFailed(Code.NotFound, HTTPStatus.NOT_FOUND.phrase)


def _is_form(request: web.BaseRequest) -> bool:
    return request.method == "POST" and request.headers.get("Content-Type") == _FORM


def _query(text: str) -> list[tuple[str, str]]:
    """Of a URL, or of a form."""
    try:
        return parse_query(text)
    except ValueError as exc:
        raise CallFailed(Code.InvalidArgument, f"more than {MOST_PARAMETERS} parameters") from exc


def _seconds(request: web.BaseRequest) -> float | None:
    """How long the client waits, by the header that gRPC's clients use."""
    text = request.headers.get("Grpc-Timeout")
    if not text:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise CallFailed(Code.InvalidArgument, f"invalid grpc-timeout: {text[:100]}")
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def failure_response(failure: CallFailed) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if failure.code is Code.Unauthenticated else {}
    return error_response(HTTP_STATUS[failure.code], failure.code, str(failure), headers)


def error_response(status: int, code: Code, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return json_response(status, msgspec.json.encode({"code": int(code), "message": message}), headers or {})


def json_response(status: int, body: bytes, headers: Mapping[str, str]) -> web.Response:
    own = {"X-Content-Type-Options": "nosniff", **headers}
    return web.Response(status=status, body=body, content_type="application/json", headers=own)
