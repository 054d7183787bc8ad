"""How Ray's dashboard wraps an answer: the last step before bytes. Three envelopes, and what a failure looks like.

A session that is still being read says so with every answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from raykeeper.history.ingest.session import Progress, Session
from raykeeper.history.query.cache import ResponseCache
from raykeeper.masking import Masked, masked, masked_text

PROGRESS_HEADER = "X-Raykeeper-Progress"
"""Bytes of events that were read, and of all; only in answers of a session that is still being read."""


def progress_headers(session: Session) -> dict[str, str]:
    progress = _unfinished(session)
    return {PROGRESS_HEADER: f"{progress.done_bytes}/{progress.total_bytes}"} if progress else {}


def with_partial_warning(session: Session, listed: Listed) -> Listed:
    """The list; Ray's commands print its warning where events are missing from it."""
    progress = _unfinished(session)
    if progress is None:
        return listed
    percent = 100 * progress.done_bytes // progress.total_bytes
    warning = f"The history server is still reading this session: {percent} % of its events are in this answer."
    return replace(listed, partial_failure=warning)


def _unfinished(session: Session) -> Progress | None:
    if session.progress.is_done:
        return None
    return session.progress


JSON = "application/json; charset=utf-8"
TROUBLE = "500 Internal Server Error\n\nServer got itself in trouble"
"""What Ray's web server says when a handler fails: clients know it, so we say it where Ray would."""


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
    encoded: Sequence[Masked] = ()
    """The rows where they are JSON already, a tenth of the memory; `rows` is empty then."""


def json_response(value: Masked, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Bare JSON, as the job API answers."""
    return Response(bytes(value.json), status, headers, media_type=JSON)


async def polled_response(value: object) -> Response:
    """What was polled, masked in a thread: it may have megabytes, and others are answered meanwhile."""
    return json_response(await asyncio.to_thread(masked, value))


def dashboard_response(message: str, data: Mapping[str, object], status: int = 200) -> Response:
    """The envelope of what was made for the frontend; `data` is in camelCase already."""
    return json_response(masked({"result": status == 200, "msg": message, "data": data}), status)


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
    return Response(masked_text(text), status, media_type="text/plain; charset=utf-8")


def trouble_response() -> Response:
    return text_response(TROUBLE, 500)


def not_found_response() -> Response:
    return text_response("404: Not Found", 404)


def _counted(listed: Listed, result: object) -> dict[str, object]:
    return {
        "total": listed.total,
        "num_after_truncation": listed.after_source,
        "num_filtered": listed.matching,
        "result": result,
        "partial_failure_warning": listed.partial_failure,
        "warnings": list(listed.warnings) or None,
    }


class _NotCached(Exception):
    """An answer that is no success."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


async def cached_response(cache: ResponseCache, key: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
    """The JSON answer under this key; only successes are kept."""

    async def body() -> bytes:
        response = await make()
        if response.status_code != HTTPStatus.OK:
            raise _NotCached(response)
        return bytes(response.body)

    try:
        kept: bytes = await cache.get(key, body, len)
        return json_response(Masked(msgspec.Raw(kept)))  # it was masked when it was made
    except _NotCached as exc:
        return exc.response
