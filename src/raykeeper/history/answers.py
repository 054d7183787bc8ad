"""How Ray's dashboard wraps an answer: the last step before bytes. Three envelopes, and what a failure looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response

JSON = "application/json; charset=utf-8"
TROUBLE = "500 Internal Server Error\n\nServer got itself in trouble"
"""What Ray's web server says when a handler fails: clients know it, so we say it where Ray would."""

_encoder = msgspec.json.Encoder()


class InvalidQuery(ValueError):
    """The request asks for something that does not exist; Ray's state API answers 400 with this text."""


class Unanswerable(Exception):
    """Ray's own handler fails on this request, so that a client sees 500 and no reason."""


class NotThere(Unanswerable):
    """Ray fails on it because what the request is about is not there."""


class LogUnknown(Exception):
    """There is no such log; the text is Ray's, which it answers with 500."""


class LogRefused(LogUnknown):
    """No log can be meant by what was asked for: an id that nothing has, or a path that leads out of `logs/`."""


@dataclass(frozen=True)
class Listed:
    """One page of a list, with how many there are. We never truncate, so all counts are exact."""

    rows: Sequence[Mapping[str, Any]]
    total: int
    """What the list holds, after the filters that Ray's GCS itself applies."""
    after_source: int
    """`num_after_truncation`: what the GCS hands to the dashboard."""
    matching: int
    """What all filters leave."""
    warnings: tuple[str, ...] = ()
    partial_failure: str | None = ""
    """Ray has None instead of no text where a list is gathered from all nodes."""
    encoded: Sequence[msgspec.Raw] = ()
    """The rows where they are JSON already, a tenth of the memory; `rows` is empty then."""


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Bare JSON, as the job API answers."""
    return Response(_encoder.encode(value), status, headers, media_type=JSON)


def dashboard_response(message: str, data: Mapping[str, object], status: int = 200) -> Response:
    """The envelope of what was made for the frontend; `data` is in camelCase already."""
    return json_response({"result": status == 200, "msg": message, "data": data}, status)


def list_response(listed: Listed) -> Response:
    """The state API's envelope around rows."""
    return dashboard_response("", {"result": _counted(listed, listed.encoded or listed.rows)})


def summary_response(listed: Listed, summary: Mapping[str, object]) -> Response:
    """The state API's envelope around a summary; Ray files it under the one node id `cluster`."""
    result = {"node_id_to_summary": {"cluster": summary}}
    return dashboard_response("", {"result": _counted(listed, result)})


def refused_response(message: str, status: int = 400) -> Response:
    """The state API's envelope around a reason."""
    return dashboard_response(message, {"result": None}, status)


def text_response(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/plain; charset=utf-8")


def trouble_response() -> Response:
    return text_response(TROUBLE, 500)


def not_found_response() -> Response:
    return text_response("404: Not Found", 404)


def raw_response(body: bytes | msgspec.Raw, status: int = 200) -> Response:
    """JSON that is text already, byte for byte."""
    return Response(bytes(body), status, media_type=JSON)


def _counted(listed: Listed, result: object) -> dict[str, object]:
    return {
        "total": listed.total,
        "num_after_truncation": listed.after_source,
        "num_filtered": listed.matching,
        "result": result,
        "partial_failure_warning": listed.partial_failure,
        "warnings": list(listed.warnings) or None,
    }
