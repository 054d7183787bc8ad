"""Answers of any length: written while they are read, each in a slot, so that clients who do not read cost little."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from raykeeper.history.logs.stream_slots import NoSlot, Slot, StreamSlots

_PIECE_BYTES = 64 << 10  # who takes one of them goes on reading; a frame of a pack is much more
_RETRY_SECONDS = 10


async def streamed(
    request: Request, slots: StreamSlots, pieces: AsyncIterator[bytes], *, headers: Mapping[str, str], media_type: str
) -> Response:
    """The pieces, of which the first is here: what fails before it is still an answer and no broken download.

    Nothing is read before there is a slot, and nothing for a HEAD.
    """
    if request.method == "HEAD":
        return Response(headers=headers, media_type=media_type)
    try:
        slot = slots.take(client_of(request))
    except NoSlot:
        return refusal()
    try:
        first = await anext(pieces, None)
    except BaseException:
        slot.give_back()
        raise
    return _SlottedResponse(slot, first, pieces, headers=headers, media_type=media_type)


def client_of(connection: HTTPConnection) -> str:
    """By address: whatever else a client says of itself, it can say a hundred times in other words."""
    return connection.client.host if connection.client else ""


def refusal() -> Response:
    headers = {"Retry-After": str(_RETRY_SECONDS)}
    return PlainTextResponse("too many logs are read or followed at once; try again later", 503, headers)


class _SlottedResponse(StreamingResponse):
    """Holds its slot for as long as it is sent, and ends when another client takes it."""

    def __init__(self, slot: Slot, first: bytes | None, pieces: AsyncIterator[bytes], **named: Any) -> None:
        super().__init__(_small(first, pieces), **named)
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_slot(message: Message) -> None:
            with self._slot.sending():
                await send(message)

        async with self._slot.held():
            await super().__call__(scope, receive, send_in_slot)


async def _small(first: bytes | None, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces that a slow client takes in a while."""
    piece = first
    while piece is not None:
        for begin in range(0, len(piece), _PIECE_BYTES):
            yield piece[begin : begin + _PIECE_BYTES]
        piece = await anext(pieces, None)
