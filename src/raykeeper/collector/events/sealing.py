"""A closed journal becomes compressed segments whose keys follow from the journal. Blocks; for a thread.

The same journal gives the same keys again, so sealing it twice, after a crash, overwrites and never doubles.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from raykeeper.collector.events.disk import ClosedJournal
from raykeeper.collector.events.filing import Filer, Filing, Identities, Place, place_of_rejects
from raykeeper.collector.events.journal import HEADER_BYTES, read_journal
from raykeeper.collector.events.limits import EventSettings
from raykeeper.collector.events.splitting import Event, SetAside, split_body
from raykeeper.layout.keys import EventSegmentKey, RejectsKey, SealedKey, SessionId
from raykeeper.layout.records import Reject, encode_record
from raykeeper.layout.segments import compress_lines
from raykeeper.settings.values import MIB

MAX_REJECT_BYTES = MIB
"""Of one piece that was set aside; of a longer one the first part is kept."""
_OVERSIZE = 1.5  # a journal is closed a little above the limit, and its rest is not worth an object
_PIECE_EVENTS = 500  # joined before they are compressed: a call of the compressor costs as much as a small event


@dataclass(frozen=True)
class Segment:
    """One object for the bucket."""

    key: str
    data: bytes


@dataclass(frozen=True)
class ReadJournal:
    """What a journal holds, by place."""

    journal: ClosedJournal
    filing: Filing
    torn_bytes: int
    """At its end, of a body that was never acknowledged."""
    rejects_place: Place


def read_closed(journal: ClosedJournal, identities: Identities) -> ReadJournal:
    """Split and file every body. The events point into the file, which stays mapped as long as they live."""
    filer = Filer(identities)
    read_bytes = 0
    data = _mapped(journal)
    for record in read_journal(data):
        filer.add(split_body(record.body, record.flags), record.received_ns)
        read_bytes += HEADER_BYTES + len(record.body)
    return ReadJournal(journal, filer.filing, len(data) - read_bytes, place_of_rejects(identities))


def seal(read: ReadJournal, settings: EventSettings) -> Iterator[Segment]:
    """Every segment of a journal, one at a time so that memory is needed for one only."""
    for place, events in sorted(read.filing.events.items()):
        for number, lines in enumerate(_parts(events, int(settings.segment_max_bytes * _OVERSIZE))):
            yield Segment(_key(EventSegmentKey, place, read.journal, number, settings), compress_lines(lines))
    if read.filing.set_aside:
        lines = map(_reject_line, read.filing.set_aside)
        yield Segment(_key(RejectsKey, read.rejects_place, read.journal, 0, settings), compress_lines(lines))


def _mapped(journal: ClosedJournal) -> memoryview:
    with journal.path.open("rb") as file:
        if not journal.size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _parts(events: Sequence[Event], max_bytes: int) -> Iterator[Iterator[bytes]]:
    """Events in groups of about `max_bytes`, each as a few long pieces of whole lines, made as they are asked for.

    Assumes that a group is read to its end before the next one is asked for.
    """
    pieces = (b"\n".join(events[start : start + _PIECE_EVENTS]) for start in range(0, len(events), _PIECE_EVENTS))
    for first in pieces:
        yield _part(first, pieces, max_bytes)


def _part(first: bytes, more: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    yield first
    size = len(first)
    while size < max_bytes and (piece := next(more, None)) is not None:
        yield piece
        size += len(piece)


def _key(kind: type[SealedKey], place: Place, journal: ClosedJournal, number: int, settings: EventSettings) -> str:
    session = SessionId(settings.namespace, settings.cluster, place.session)
    return kind(session, place.node or settings.unknown_node, journal.closed_ns, number).key


def _reject_line(piece: SetAside) -> bytes:
    received_at = datetime.fromtimestamp(piece.received_ns / 1e9, UTC)
    is_cut = len(piece.text) > MAX_REJECT_BYTES
    text = piece.text[:MAX_REJECT_BYTES].decode(errors="replace")
    return encode_record(Reject(reason=piece.reason, received_at=received_at, text=text, is_cut=is_cut))
