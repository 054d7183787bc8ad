"""What the JSON API answers when it cannot answer: one shape for every reason."""

from __future__ import annotations

from math import ceil

import msgspec
from starlette.responses import Response

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.answers import InvalidQuery, json_response
from raykeeper.history.failures import RETRY_SECONDS, Telling, status_of

WORDS = {
    400: "The request asks for something that the operation does not know.",
    401: "No token was shown, and this server wants one.",
    403: "The token that was shown is not the right one, or the server was called by a foreign name.",
    404: "There is no such session, cluster or job.",
    405: "Operations answer GET and HEAD alone.",
    500: "A mistake of the server's own, which is in its log.",
    502: "The store refused what was asked of it.",
    503: "Try again after the seconds that `Retry-After` names.",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Every answer of the API whose status is 400 or more."""

    error: str
    """One sentence, lower case, that names what it is about."""


class NotThere(RaykeeperError):
    """What the path names does not exist."""


def problem_response(text: str, status: int) -> Response:
    return json_response(Problem(error=text), status)


def failed_response(error: Exception) -> Response | None:
    """The answer to an error that is not our bug; None for one that is."""
    if isinstance(error, InvalidQuery):
        return problem_response(str(error), 400)
    if isinstance(error, NotThere):
        return problem_response(str(error), 404)
    if (status := status_of(error)) is None:
        return None
    response = problem_response(str(error), status)
    if isinstance(error, Unavailable):
        response.headers["Retry-After"] = str(ceil(error.retry_after or RETRY_SECONDS))
    return response


def bug_response() -> Response:
    return problem_response("the server made a mistake, which is in its log", 500)


AS_PROBLEM = Telling(failed_response, bug_response)
