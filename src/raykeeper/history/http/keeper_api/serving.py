"""All operations, as routes: parameters become a query, the answer becomes JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from raykeeper.history.http.keeper_api.clusters import CLUSTER_OPERATIONS
from raykeeper.history.http.keeper_api.curves import CURVE_OPERATIONS
from raykeeper.history.http.keeper_api.failures import FAILURE_OPERATIONS
from raykeeper.history.http.keeper_api.jobs import JOB_OPERATIONS
from raykeeper.history.http.keeper_api.live import LIVE_OPERATIONS
from raykeeper.history.http.keeper_api.openapi import openapi_document
from raykeeper.history.http.keeper_api.operation import (
    PREFIX,
    Call,
    Operation,
    parse_query,
    problem_response,
    session_in_path,
)
from raykeeper.history.http.keeper_api.overview import OVERVIEW_OPERATIONS, REPORT_OPERATIONS
from raykeeper.history.http.keeper_api.rayjobs import RAYJOB_OPERATIONS
from raykeeper.history.http.keeper_api.search import SEARCH_OPERATIONS
from raykeeper.history.http.keeper_api.sessions import SESSION_OPERATIONS
from raykeeper.history.http.keeper_api.storage import STORAGE_OPERATIONS
from raykeeper.history.http.keeper_api.timeline import TIMELINE_OPERATIONS
from raykeeper.history.http.responses import json_response
from raykeeper.history.query.history import History
from raykeeper.layout.keys import SessionId
from raykeeper.masking import masked, of_our_own

OPERATIONS: tuple[Operation[Any], ...] = (
    *SESSION_OPERATIONS,
    *JOB_OPERATIONS,
    *FAILURE_OPERATIONS,
    *REPORT_OPERATIONS,
    *CLUSTER_OPERATIONS,
    *RAYJOB_OPERATIONS,
    *LIVE_OPERATIONS,
    *OVERVIEW_OPERATIONS,
    *CURVE_OPERATIONS,
    *TIMELINE_OPERATIONS,
    *SEARCH_OPERATIONS,
    *STORAGE_OPERATIONS,
)


AS_OF_HEADER = "X-Raykeeper-As-Of"
DOCUMENT_PATH = f"{PREFIX}/openapi.json"

Handler = Callable[[Request, History], Awaitable[Response]]
SessionOf = Callable[[HTTPConnection], SessionId | None]


def operation_handlers() -> Iterator[tuple[str, Handler]]:
    """Every path of the API, and who answers there."""
    yield DOCUMENT_PATH, _get_document
    for operation in OPERATIONS:
        yield PREFIX + operation.path, _operation_handler(operation, session_in_path)


def session_operation_handlers(session_of: SessionOf) -> Iterator[tuple[str, Handler]]:
    """The operations about one session, by paths relative to the session's own prefix."""
    for operation in OPERATIONS:
        if operation.path_in_session:
            yield operation.path_in_session, _operation_handler(operation, session_of)


def _operation_handler(operation: Operation[Any], session_of: SessionOf) -> Handler:
    async def handle(request: Request, history: History) -> Response:
        query = parse_query(request.query_params.multi_items(), operation.query)
        call = Call(history, request.path_params, query, session_of(request))
        response = json_response(masked(await operation.handle(call)))
        if call.as_of is not None:
            response.headers[AS_OF_HEADER] = call.as_of.isoformat()
        return response

    return handle


async def _get_document(_: Request, __: History) -> Response:
    return json_response(of_our_own(_document()))


async def no_operation(request: Request, _: History) -> Response:
    """What the API answers below its prefix where it has no operation."""
    return problem_response(f"there is no operation {request.url.path}; see {DOCUMENT_PATH}", 404)


@cache
def _document() -> bytes:
    return msgspec.json.format(msgspec.json.encode(openapi_document(OPERATIONS)), indent=2)
