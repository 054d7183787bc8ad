"""From an error to an answer, in one table for every route."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from starlette.responses import Response

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.errors import InvalidQuery, LogUnknown, Unanswerable
from raykeeper.history.http.responses import refused_response, text_response, trouble_response
from raykeeper.history.ingest.sessions import SessionMissing
from raykeeper.history.store.removals import SessionRemoved
from raykeeper.storage.errors import ObjectMissing, StoreRefused

RETRY_SECONDS = 5


class NoSession(RaykeeperError):
    """A request without cookies to a path that is about a session."""


_STATUS: tuple[tuple[type[RaykeeperError], int], ...] = (
    (SessionMissing, 404),
    (SessionRemoved, 410),
    (NoSession, 400),
    (ObjectMissing, 404),
    (Unavailable, 503),
    (StoreRefused, 502),
    (RaykeeperError, 500),
)


@dataclass(frozen=True)
class ErrorFormat:
    """How errors are told to whoever asked: as Ray would, as JSON, or as a page."""

    expected: Callable[[Exception], Response | None]
    """The answer to an error that is not our bug; None for one that is."""
    bug: Callable[[], Response]
    """The answer to our own bug, which is in the log."""


def status_of(error: Exception) -> int | None:
    """The status that says what kind of error it is; None for our bug."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), None)


def failure_response(error: Exception) -> Response | None:
    """The answer to an error that is not our bug; None for one that is."""
    if isinstance(error, InvalidQuery):
        return refused_response(str(error))
    if isinstance(error, Unanswerable):
        return trouble_response()
    if isinstance(error, LogUnknown):
        return text_response(str(error), 500)
    if (status := status_of(error)) is None:
        return None
    response = text_response(str(error), status)
    if isinstance(error, Unavailable):
        response.headers["Retry-After"] = str(ceil(error.retry_after or RETRY_SECONDS))
    return response


RAY_ERRORS = ErrorFormat(failure_response, trouble_response)
