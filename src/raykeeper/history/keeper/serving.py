"""Operations as routes: parameters become a query, the answer becomes JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from raykeeper.history.answers import json_response, raw_response
from raykeeper.history.keeper.openapi import openapi_document
from raykeeper.history.keeper.operation import PREFIX, Call, Operation, session_in_path
from raykeeper.history.keeper.operations import OPERATIONS
from raykeeper.history.keeper.problems import problem_response
from raykeeper.history.keeper.queries import parse_query
from raykeeper.history.parts import Parts
from raykeeper.layout.keys import SessionId

AS_OF_HEADER = "X-Raykeeper-As-Of"
DOCUMENT_PATH = f"{PREFIX}/openapi.json"

Handler = Callable[[Request], Awaitable[Response]]
SessionOf = Callable[[HTTPConnection], SessionId | None]


def operation_handlers(parts: Parts) -> Iterator[tuple[str, Handler]]:
    """Every path of the API, and who answers there."""
    yield DOCUMENT_PATH, get_document
    for operation in OPERATIONS:
        yield PREFIX + operation.path, operation_handler(parts, operation, session_in_path)


def session_operation_handlers(parts: Parts, session_of: SessionOf) -> Iterator[tuple[str, Handler]]:
    """The operations about one session, by paths relative to the session's own prefix."""
    for operation in OPERATIONS:
        if operation.path_in_session:
            yield operation.path_in_session, operation_handler(parts, operation, session_of)


def operation_handler(parts: Parts, operation: Operation[Any], session_of: SessionOf) -> Handler:
    async def handle(request: Request) -> Response:
        query = parse_query(request.query_params.multi_items(), operation.query)
        call = Call(parts, request.path_params, query, session_of(request))
        response = json_response(await operation.handle(call))
        if call.as_of is not None:
            response.headers[AS_OF_HEADER] = call.as_of.isoformat()
        return response

    return handle


async def get_document(_: Request) -> Response:
    return raw_response(_document())


async def no_operation(request: Request) -> Response:
    """What the API answers below its prefix where it has no operation."""
    return problem_response(f"there is no operation {request.url.path}; see {DOCUMENT_PATH}", 404)


@cache
def _document() -> bytes:
    return msgspec.json.format(msgspec.json.encode(openapi_document(OPERATIONS)), indent=2)
