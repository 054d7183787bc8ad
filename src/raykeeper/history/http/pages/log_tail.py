"""What comes to a log while its session runs, as server-sent events of rows for its viewer. Ends with the session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.errors import NotFound
from raykeeper.history.http.keeper_api.operation import Query
from raykeeper.history.http.keeper_api.sessions import Name
from raykeeper.history.http.pages.forms import given_parameters, page_query
from raykeeper.history.http.pages.log_viewer import LogAddress, lines_part
from raykeeper.history.http.streaming import streamed
from raykeeper.history.logs.store import FilePlace
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.search.log_view import GrowingLines, ViewedLine, growing_lines
from raykeeper.history.urls import session_path
from raykeeper.layout.logs import Hole
from raykeeper.masking import masked_text

BACKLOG_BYTES = 1 << 20
"""Of what was written before somebody began to follow: more is on pages."""
_INTERVAL_SECONDS = 1.0
_BEAT_SECONDS = 15.0  # proxies close what is silent for a minute
_LIFETIME_SECONDS = 600.0  # then a browser comes back by itself, and who has gone away without a word holds no slot
_ROWS_OF_EVENT = 200
_RECONNECT_MS = 3000
_LAST = 2**62


class TailQuery(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which file, and from where on."""

    node: Annotated[Name, Meta(min_length=1)]
    file: Annotated[str, Meta(min_length=1, max_length=4096)]
    generation: Annotated[Name, Meta(min_length=1)]
    start: Annotated[int, Meta(ge=0, le=_LAST)] = 0
    line: Annotated[int, Meta(ge=0, le=_LAST)] = 0
    """The number of the line there; 0 where nobody knows."""


async def get_log_tail(request: Request, context: SessionContext, _: History) -> Response:
    """Raises NotFound and InvalidQuery."""
    query = page_query(given_parameters(request.query_params.multi_items(), TailQuery), TailQuery)
    session = context.session.id
    stored = (await context.logs.files(session, query.node)).by_generation.get(query.generation)
    if stored is None:
        raise NotFound(f"there is no log {query.file} of node {query.node} in session {session}")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    address = LogAddress(
        f"{session_path(session)}log", session, query.node, stored.path or query.file, query.generation, is_newest=True
    )
    events = _events(context, address, _place(request, query, stored.size))
    return await streamed(request, context.logs.tails, events, headers=headers, media_type="text/event-stream")


@dataclass(frozen=True)
class _Place:
    """Where a stream begins."""

    offset: int
    line: int | None
    """None where nobody knows."""
    left_out: int = 0
    """So many bytes before it were asked for and are too many to be sent."""


def _place(request: Request, query: TailQuery, size: int) -> _Place:
    """Where a connection that broke had come to, or where the page ends; never far behind the end of the file."""
    offset, _, line = request.headers.get("last-event-id", "")[:50].partition(":")
    if offset.isdecimal() and line.isdecimal():
        start, number = int(offset), int(line)
    else:
        start, number = query.start, query.line
    floor = max(0, size - BACKLOG_BYTES)
    if start < floor:
        return _Place(floor, None, floor - start)
    # The size may be some seconds older than what a browser has seen, so a little more is believed.
    return _Place(start, number or None) if start <= size + BACKLOG_BYTES else _Place(size, None)


async def _events(context: SessionContext, address: LogAddress, begin: _Place) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop()
    ends_at = clock.time() + _LIFETIME_SECONDS
    yield f"retry: {_RECONNECT_MS}\n\n".encode()
    place = FilePlace(address.session, address.node_id, address.generation)
    growing = await growing_lines(context.logs, place, begin.offset, begin.line)
    rows = _Rows(growing, address, begin.line or 0)
    if begin.left_out:
        yield rows.event([_left_out(begin)])
    pieces = context.logs.follow_exactly(place, begin.offset, _INTERVAL_SECONDS, context.is_over)
    async for piece in _with_beats(pieces):
        if piece is None:
            yield b": nothing new\n\n"
        else:
            for event in rows.take(piece):
                yield event
        if clock.time() >= ends_at:
            return
    for event in rows.take_rest():
        yield event
    yield b"event: end\ndata: {}\n\n"


def _left_out(begin: _Place) -> ViewedLine:
    words = f"{begin.left_out:,} bytes came meanwhile and are not shown here; reload the page to read them"
    return ViewedLine(begin.offset - begin.left_out, begin.offset, None, ((words, ""),), is_gap=True)


def _gap(hole: Hole) -> ViewedLine:
    words = masked_text(f"{hole.end - hole.start:,} bytes of this log are missing here: {hole.reason}")
    return ViewedLine(hole.start, hole.end, None, ((words, ""),), is_gap=True)


class _Rows:
    """Events of rows, each by the place behind them in the file: from there a browser asks on."""

    def __init__(self, growing: GrowingLines, address: LogAddress, number: int) -> None:
        self._growing = growing
        self._address = address
        self._number = number  # of the next line; 0 where nobody knows
        self._missing = 0  # bytes in holes, of which `growing` hears nothing

    def take(self, piece: bytes | Hole) -> list[bytes]:
        if isinstance(piece, bytes):
            return self._events(self._growing.take(piece))
        events = [*self.take_rest(), self.event([_gap(piece)])]
        self._missing += piece.end - piece.start
        return events

    def take_rest(self) -> list[bytes]:
        """What there is of a line that is not whole."""
        return self._events(self._growing.take(b"", is_last=True))

    def event(self, lines: Sequence[ViewedLine]) -> bytes:
        last = lines[-1]
        if last.number is not None:
            self._number = last.number + last.is_ended
        data = json.dumps({"rows": lines_part(lines, self._address)})
        return f"id: {last.end}:{self._number}\ndata: {data}\n\n".encode()

    def _events(self, lines: Sequence[ViewedLine]) -> list[bytes]:
        missing = self._missing
        placed = [replace(line, offset=line.offset + missing, end=line.end + missing) for line in lines]
        return [self.event(placed[first : first + _ROWS_OF_EVENT]) for first in range(0, len(placed), _ROWS_OF_EVENT)]


async def _with_beats(pieces: AsyncIterator[bytes | Hole]) -> AsyncIterator[bytes | Hole | None]:
    """The pieces, and None whenever none came for a while."""
    waiting: asyncio.Task[bytes | Hole | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(pieces, None))
            done, _ = await asyncio.wait({waiting}, timeout=_BEAT_SECONDS)
            if not done:
                yield None
                continue
            piece, waiting = waiting.result(), None
            if piece is None:
                return
            yield piece
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
