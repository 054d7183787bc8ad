"""`/api/v0/logs/file` and `/api/v0/logs/stream`: one log, or the part of it that a task wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from raykeeper.history.asked import Asked
from raykeeper.history.endpoints.logs_resolve import Found, find_log
from raykeeper.history.heartbeats import Heartbeats
from raykeeper.history.logs.ansi import without_codes
from raykeeper.history.logs.logquery import ALL_LINES, LogQuery, parse_log_query
from raykeeper.history.logs.logstore import FilePlace, LogStore


async def get_log(request: Request, asked: Asked, logs: LogStore, heartbeats: Heartbeats) -> Response:
    """Raises Unanswerable and LogUnknown."""
    query = parse_log_query(request.query_params, request.path_params["media_type"])
    found = await find_log(asked, logs, query)
    pieces = await started(read_log(asked, logs, heartbeats, query, found))
    headers = {"Content-Disposition": attachment(query.download_name)}
    return StreamingResponse(pieces, headers=headers, media_type="text/plain")


async def read_log(
    asked: Asked, logs: LogStore, heartbeats: Heartbeats, query: LogQuery, found: Found
) -> AsyncIterator[bytes]:
    """The last lines that were asked for, and what follows while the session runs, if that was asked for too."""
    start = found.start
    if query.lines != ALL_LINES:
        start = await logs.reader.tail_start(found.stored, found.start, found.end, query.lines)
    if query.follows:
        place = FilePlace(asked.session.id, found.node_id, found.stored.generation)
        pieces = logs.follow(place, start, query.interval_seconds, lambda: heartbeats.is_over(asked.session.id))
    else:
        pieces = logs.reader.stream(found.stored, start, found.end)
    async for piece in without_codes(pieces) if query.drops_ansi else pieces:
        yield piece


async def started(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, of which the first is here: what fails before it is still an answer and no broken download."""
    first = await anext(pieces, None)

    async def all_pieces() -> AsyncIterator[bytes]:
        if first is not None:
            yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


def attachment(name: str) -> str:
    """A header that names the download, whatever characters a request puts into the name."""
    plain = "".join(char for char in name if char.isascii() and char.isprintable() and char not in '"\\')
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'attachment; filename="{plain}"{extended}'
