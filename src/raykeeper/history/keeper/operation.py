"""What one operation of the JSON API is: a path, typed parameters, the type of its answer, and who answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import HTTPConnection

from raykeeper.history.addressing import session_of_path
from raykeeper.history.asked import Asked
from raykeeper.history.parts import Parts
from raykeeper.layout.keys import SessionId

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

    def __init__(self, parts: Parts, names: Mapping[str, str], query: Q, session: SessionId | None = None) -> None:
        self.parts = parts
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
        return await self.parts.resolve(self._session)

    async def ask(self) -> Asked:
        """That session, ready to be read. Raises SessionMissing."""
        asked = await self.parts.ask(await self.session())
        self.as_of = asked.session.as_of
        return asked


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
    """Gives a value of that type, or its JSON as `msgspec.Raw`. Raises `NotThere`, `InvalidQuery`, and what opening
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
