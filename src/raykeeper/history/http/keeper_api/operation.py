"""One operation of the JSON API: a path, typed parameters, the type of its answer, who answers, and how errors look."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from raykeeper.errors import Unavailable
from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.errors import RETRY_SECONDS, ErrorFormat, status_of
from raykeeper.history.http.responses import json_response
from raykeeper.history.http.routing import session_of_path
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.layout.keys import SessionId
from raykeeper.layout.records import is_usable_time
from raykeeper.masking import masked

WORDS = {
    400: "The request asks for something that the operation does not know.",
    401: "No token was shown, and this server wants one.",
    403: "The token that was shown is not the right one, or the server was called by a foreign name.",
    404: "There is no such session, cluster or job.",
    410: "The session was removed by retention; the sentence says when and by which rule.",
    405: "Operations answer GET and HEAD alone.",
    500: "An internal error of the server; its log has the details.",
    502: "The store refused what was asked of it.",
    503: "Try again after the seconds that `Retry-After` names.",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer of the API whose status is 400 or more."""

    error: str
    """One sentence, lower case, that names what it is about."""


def problem_response(text: str, status: int) -> Response:
    return json_response(masked(Problem(error=text)), status)


def _failed_response(error: Exception) -> Response | None:
    """The answer to an error that is not our bug; None for one that is."""
    if isinstance(error, InvalidQuery):
        return problem_response(str(error), 400)
    if isinstance(error, NotFound):
        return problem_response(str(error), 404)
    if (status := status_of(error)) is None:
        return None
    response = problem_response(str(error), status)
    if isinstance(error, Unavailable):
        response.headers["Retry-After"] = str(ceil(error.retry_after or RETRY_SECONDS))
    return response


def _bug_response() -> Response:
    return problem_response("the server made a mistake, which is in its log", 500)


JSON_ERRORS = ErrorFormat(_failed_response, _bug_response)


_NUMBER = re.compile(r"\s*[-+]?[\d._]+(e[-+]?\d+)?\s*", re.IGNORECASE)


def parse_query(given: Iterable[tuple[str, str]], kind: type[Q]) -> Q:
    """The query that these parameters make. Raises InvalidQuery, which names the parameter."""
    pairs = list(given)
    fields = {field.name for field in msgspec.structs.fields(kind)}
    for name, times in Counter(name for name, _ in pairs).items():
        if name not in fields:
            raise InvalidQuery(f"there is no parameter {name!r}; there are: {', '.join(sorted(fields)) or 'none'}")
        if times > 1:
            raise InvalidQuery(f"parameter {name!r} is given {times} times")
    try:
        query = msgspec.convert(dict(pairs), kind, strict=False)  # not strict: numbers come as text
    except msgspec.ValidationError as exc:
        raise InvalidQuery(_told(str(exc))) from exc
    for name, text in pairs:
        if not _is_told_plainly(text, getattr(query, name)):
            raise InvalidQuery(f"parameter {name!r}: {text!r} is no value of it")
    return query


def _is_told_plainly(text: str, value: object) -> bool:
    """Whether the library read what is documented: it takes `null` for none, numbers and any year for moments, too."""
    if isinstance(value, datetime):
        return not _NUMBER.fullmatch(text) and is_usable_time(value)
    return value is not None


def _told(message: str) -> str:
    """The library's sentence, with the parameter's name in front."""
    reason, _, place = message.partition(" - at `$.")
    return f"parameter {place.rstrip('`')!r}: {reason[:1].lower()}{reason[1:]}" if place else reason


PREFIX = "/api/keeper/v1"
SESSION = "/sessions/{namespace}/{cluster}/{session}"
"""Begins the path of every operation about one session; `latest` may stand for the session's name."""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters behind a path's `?`: one field each, bounded and described by `msgspec.Meta`.

    A field that may be left out has a default. A parameter that is no field is refused, so that a misspelt filter is
    never taken for none.
    """


class NoQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of an operation that takes no parameters."""


Q = TypeVar("Q", bound=Query)
SessionOf = Callable[[HTTPConnection], SessionId]


class Call(Generic[Q]):
    """One request to an operation."""

    def __init__(self, history: History, names: Mapping[str, str], query: Q, session: SessionId | None = None) -> None:
        self.history = history
        self.names = names
        """What stands in the braces of the path."""
        self.query = query
        self.as_of: datetime | None = None
        """How fresh the session was that was asked; it becomes a header of the answer."""
        self._session = session

    async def session(self) -> SessionId:
        """The session that the request is about, which the store may or may not have."""
        if self._session is None:
            raise ValueError("the path of this operation names no session")
        return await self.history.resolve(self._session)

    async def open(self) -> SessionContext:
        """That session, ready to be read. Raises SessionMissing."""
        context = await self.history.open(await self.session())
        self.as_of = context.session.as_of
        return context


@dataclass(frozen=True)
class Operation(Generic[Q]):
    """One row of the API's table; answers GET and HEAD."""

    name: str
    """A verb and a noun; the OpenAPI document's `operationId`."""
    path: str
    """Below `/api/keeper/v1`; a name in braces is one path segment."""
    summary: str
    """One sentence without a full stop."""
    query: type[Q]
    answer: Any
    """The type of the answer, a struct or dataclass: the document's schema follows from it."""
    handle: Callable[[Call[Q]], Awaitable[object]]
    """Gives a value of that type, or its JSON as `msgspec.Raw`. Raises `NotFound`, `InvalidQuery`, and what opening
    a session raises."""

    @property
    def is_about_session(self) -> bool:
        return self.path.startswith(SESSION)

    @property
    def path_in_session(self) -> str | None:
        """Relative to the session's own prefix `/s/…`, where the operation is answered as well."""
        rest = self.path.removeprefix(SESSION)
        return f"{PREFIX}{rest}" if self.is_about_session and rest else None


def session_in_path(connection: HTTPConnection) -> SessionId | None:
    """The session that an operation's own path names, if it names one."""
    return session_of_path(connection) if "session" in connection.path_params else None
