"""A closed journal becomes compressed segments whose keys follow from the journal. Blocks; for a thread.

The same journal gives the same keys again, so sealing it twice, after a crash, overwrites and never doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raykeeper.collector.events.disk import ClosedJournal
from raykeeper.collector.events.durable import read_file
from raykeeper.collector.events.filing import Filer, Filing, ForeignSessions, Identities, Place, place_of_rejects
from raykeeper.collector.events.journal import HEADER_BYTES, read_journal
from raykeeper.collector.events.limits import MAX_JOURNAL_BYTES, EventSettings
from raykeeper.collector.events.splitting import MAX_SET_ASIDE_BYTES, Event, SetAside, split_body
from raykeeper.layout.keys import EventSegmentKey, RejectsKey, SealedKey, SessionId
from raykeeper.layout.records import Reject, encode_record
from raykeeper.layout.segments import compress_lines
from raykeeper.times import from_ns

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
    damaged_bytes: int
    """Of bodies that were acknowledged and are not in the file any more: somebody else wrote to it."""
    rejects_place: Place


def read_closed(journal: ClosedJournal, identities: Identities, foreign: ForeignSessions | None = None) -> ReadJournal:
    """Split and file every body. The events point into what was read, which stays in memory as long as they live."""
    filer = Filer(identities, foreign)
    read_bytes = 0
    data = _read(journal)
    for record in read_journal(data):
        filer.add(split_body(record.body, record.flags), record.received_ns)
        read_bytes += HEADER_BYTES + len(record.body)
    torn, damaged = (0, journal.size - read_bytes) if journal.was_written_whole else (len(data) - read_bytes, 0)
    return ReadJournal(journal, filer.filing, torn, damaged, place_of_rejects(identities))


def seal(read: ReadJournal, settings: EventSettings) -> Iterator[Segment]:
    """Every segment of a journal, one at a time so that memory is needed for one only."""
    for place, events in sorted(read.filing.events.items()):
        for number, lines in enumerate(_parts(events, int(settings.segment_max_bytes * _OVERSIZE))):
            yield Segment(_key(EventSegmentKey, place, read.journal, number, settings), compress_lines(lines))
    if read.filing.set_aside:
        lines = map(_reject_line, read.filing.set_aside)
        yield Segment(_key(RejectsKey, read.rejects_place, read.journal, 0, settings), compress_lines(lines))


def read_unread(journal: ClosedJournal, reason: str, identities: Identities) -> ReadJournal:
    """A journal that cannot be split, as pieces that are set aside as they are."""
    data, filing = _read(journal), Filing()
    for start in range(0, len(data), MAX_SET_ASIDE_BYTES):
        piece = data[start : start + MAX_SET_ASIDE_BYTES]
        filing.set_aside.append(SetAside(reason, bytes(piece), received_ns=journal.closed_ns))
    return ReadJournal(journal, filing, 0, 0, place_of_rejects(identities))


def _read(journal: ClosedJournal) -> memoryview:
    """All of it. Not mapped: who cuts a mapped file short ends the process that reads it."""
    if journal.size > MAX_JOURNAL_BYTES:
        raise ValueError(f"a journal has at most {MAX_JOURNAL_BYTES} bytes, this one has {journal.size}")
    return memoryview(read_file(journal.path, MAX_JOURNAL_BYTES))


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
    received_at = from_ns(piece.received_ns)
    text = piece.text[:MAX_SET_ASIDE_BYTES].decode(errors="replace")
    return encode_record(Reject(reason=piece.reason, received_at=received_at, text=text, is_cut=piece.is_cut))
