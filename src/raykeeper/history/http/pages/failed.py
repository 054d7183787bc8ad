"""What a person sees when a page cannot be shown. Pure."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.errors import InvalidQuery, NotFound
from raykeeper.history.http.errors import ErrorFormat, status_of
from raykeeper.history.http.pages.frame import message_response

_TITLES = {
    400: "Bad request",
    404: "Not found",
    410: "Removed by retention",
    502: "Access denied by storage",
    503: "Storage unavailable",
}
_PATH_CHARS = 200


def _failed_page(error: Exception) -> Response | None:
    """The page for an error that is not our bug; None for one that is."""
    status = _status(error)
    if status is None:
        return None
    response = message_response(_TITLES.get(status, "That did not work"), _sentence(str(error)), status)
    if status == 503:
        response.headers["Refresh"] = "5"  # the page comes by itself once the store answers again
    return response


def _bug_page() -> Response:
    return message_response("Internal error", "It is in the server's log, with what led to it.", 500)


def wants_page(request: Request) -> bool:
    """Whether a person asks: browsers say so when they open an address, and at no other time."""
    return "text/html" in request.headers.get("accept", "")


def page_missing(request: Request) -> Response:
    shown = request.url.path[:_PATH_CHARS]
    return message_response("Page not found", f"There is no page {shown} here. It may have been moved.", 404)


def _status(error: Exception) -> int | None:
    if isinstance(error, InvalidQuery):
        return 400
    return 404 if isinstance(error, NotFound) else status_of(error)


def _sentence(text: str) -> str:
    """Errors are lower case without a full stop, because they stand in log lines."""
    return f"{text[:1].upper()}{text[1:]}."


HTML_ERRORS = ErrorFormat(_failed_page, _bug_page)
