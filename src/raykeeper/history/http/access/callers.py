"""Whom a request comes from, as everything behind the guard is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from raykeeper.history.visibility import EVERYTHING, NOTHING, Visibility

_SCOPE_KEY: Final = "raykeeper.caller"


@dataclass(frozen=True)
class Caller:
    """Somebody who was let in."""

    name: str
    """As pages call them; empty where nobody asked who they are. People may have chosen it themselves."""
    visibility: Visibility
    can_sign_out: bool = False
    """Whether a cookie of ours brought them here, so that pages have a button that ends it."""
    account: str = ""
    """As the audit log calls them: nobody else can have it."""


ANYBODY: Final = Caller("", EVERYTHING)
"""Whoever reaches a server that asks nobody."""
NOBODY: Final = Caller("", NOTHING)
"""Whoever asks for a path that tells nothing of any session."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of a request: it has a caller, or it is refused."""

    caller: Caller | None = None
    refusal: Response | None = None
    cookies: tuple[str, ...] = ()
    """Values of `Set-Cookie` that go with the answer, such as a renewed session."""


class Authenticator(Protocol):
    """Decides whom a request comes from."""

    @property
    def own_paths(self) -> frozenset[str]:
        """Paths that it answers itself, to anybody: where people sign in and out."""
        ...

    async def answer(self, request: Request) -> Response:
        """The answer to one of its own paths."""
        ...

    async def check(self, connection: HTTPConnection) -> Verdict:
        """Who sends this request. Raises `Unavailable` where that cannot be found out now."""
        ...


def set_caller(connection: HTTPConnection, caller: Caller) -> None:
    connection.scope[_SCOPE_KEY] = caller


def caller_of(connection: HTTPConnection) -> Caller:
    """Who sends this request. A request that passed no guard is a bug, and fails."""
    caller: Caller = connection.scope[_SCOPE_KEY]
    return caller
