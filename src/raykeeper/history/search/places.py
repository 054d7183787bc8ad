"""Where a search goes on: one word for a URL, which any replica understands. Pure."""

from __future__ import annotations

import base64
import binascii

import msgspec

from raykeeper.history.answers import InvalidQuery

_BITS = 63  # of the numbers in a place: larger ones come from nobody's offsets and times


class RecordPlace(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    """Behind this error or event."""

    ns: int
    id: str


class LogPlace(msgspec.Struct, frozen=True, array_like=True, tag="log"):
    """At this frame of this pack of a node; behind a hit where the frame's batch had more hits than a page."""

    node_id: str = ""
    pack: str = ""
    position: int = 0
    generation: str = ""
    offset: int = -1


InSession = RecordPlace | LogPlace


class SearchPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where in which session."""

    inside: InSession | None = None
    """None at the session's beginning."""
    session: str = ""
    """Its place in the list of sessions, in a search of many."""

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()


def parse_search_place(text: str) -> SearchPlace:
    """Raises InvalidQuery for what no answer ever named."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
        place = msgspec.msgpack.decode(packed, type=SearchPlace)
    except (msgspec.DecodeError, binascii.Error, ValueError) as exc:
        raise InvalidQuery("this is not a place in a search") from exc
    numbers = (place.inside.ns,) if isinstance(place.inside, RecordPlace) else ()
    if any(abs(number) >> _BITS for number in numbers):
        raise InvalidQuery("this is not a place in a search")
    return place
