"""What a person sees when a page cannot be shown. Pure."""

from __future__ import annotations

from starlette.responses import Response

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.failures import Telling, status_of
from raykeeper.history.keeper.problems import NotThere
from raykeeper.history.pages.frame import message_response

_TITLES = {
    400: "That cannot be asked",
    404: "Not found",
    502: "The store refuses",
    503: "Not now",
}


def failed_page(error: Exception) -> Response | None:
    """The page for an error that is not our bug; None for one that is."""
    status = _status(error)
    if status is None:
        return None
    response = message_response(_TITLES.get(status, "That did not work"), _sentence(str(error)), status)
    if status == 503:
        response.headers["Refresh"] = "5"  # the page comes by itself once the store answers again
    return response


def bug_page() -> Response:
    return message_response("A mistake of this server", "It is in the server's log, with what led to it.", 500)


def _status(error: Exception) -> int | None:
    if isinstance(error, InvalidQuery):
        return 400
    return 404 if isinstance(error, NotThere) else status_of(error)


def _sentence(text: str) -> str:
    """Errors are lower case without a full stop, because they stand in log lines."""
    return f"{text[:1].upper()}{text[1:]}."


AS_PAGE = Telling(failed_page, bug_page)
