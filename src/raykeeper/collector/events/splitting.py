"""One body becomes events and what is set aside. Pure; a bad event never costs its neighbours."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from raykeeper.collector.events.journal import BodyFlag
from raykeeper.collector.events.limits import MAX_BODY_BYTES
from raykeeper.settings.values import MIB

Event = bytes | msgspec.Raw
"""One event as Ray wrote it, in one line."""

MAX_EVENT_BYTES = 16 * MIB
"""Of one event: a longer one is set aside. Ray's longest that was seen is a thousandth of this."""
MAX_DECOMPRESSED_BYTES = 32 * MIB
"""Of a compressed body, which is in memory as a whole; a longer one is set aside. Ray compresses none."""
LONG_BODY_BYTES = 16 * MIB
"""Above this a body is counted before it is split, and set aside as a whole where anything is wrong with it."""
MAX_EVENTS_OF_LONG = 200_000
"""Elements of a long body; Ray sends 10,000 at most."""
MAX_SALVAGED_BYTES = 4 * MIB
"""Of one event of a malformed body. It is looked at in one step, in which no other thread of this process runs."""
MAX_COMPRESSED_PARTS = 10_000
"""Streams of one compressed body, as many as a batch has events; more are set aside. Each costs a step of its own."""
MAX_SET_ASIDE = 1000
"""Pieces of one body that are set aside one by one; what follows is set aside as a whole."""
MAX_SET_ASIDE_BYTES = MIB
"""Kept of one piece that is set aside: of a longer one the first part."""
_LOOKS_PER_BYTE = 8  # at a malformed body: above this too much of it is malformed
_BYTES_PER_COMMA, _BYTES_PER_OBJECT = 16, 24
"""Ray's events have one in 25 and in 60; far more mean millions of tiny elements, each an object here."""
_HARMLESS_BYTES = MIB  # a body that cannot hold so many elements that they matter; Ray's are below it

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_check = msgspec.json.Decoder(msgspec.Raw).decode
_BETWEEN = re.compile(rb"[\s,]*")
_NEXT_OBJECT = re.compile(rb"\}\s*,\s*(?=\{)")
# Possessive, and a text without an end is a token too: else each quote in it is the start of another search to the end.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}]*")
_ARRAY = re.compile(rb"\s*\[")
_DEPTH = dict(zip(b"{[}]", (1, 1, -1, -1), strict=True))
_OBJECT_START, _ARRAY_END, _OPENING = b"{"[0], b"]"[0], b'{["'
_TOO_LONG = f"event longer than {MAX_EVENT_BYTES // MIB} MiB"
_WINDOW_BITS = {BodyFlag.GZIP: 31, BodyFlag.DEFLATE: 15}
_FED_BYTES = 64 << 10  # to a decompressor at a time: it copies what is left of them at the end of each stream


@dataclass(frozen=True)
class SetAside:
    """Part of a body that is no event, or cannot be filed."""

    reason: str
    text: bytes
    """At most one byte more than MAX_SET_ASIDE_BYTES, by which it shows that it was cut."""
    received_ns: int = 0

    @classmethod
    def of(cls, reason: str, text: bytes | memoryview | msgspec.Raw) -> SetAside:
        """The piece with as much of its text as is kept."""
        return cls(reason, bytes(memoryview(text)[: MAX_SET_ASIDE_BYTES + 1]))

    @property
    def is_cut(self) -> bool:
        return len(self.text) > MAX_SET_ASIDE_BYTES


@dataclass
class SplitBody:
    """What one body held."""

    events: Sequence[Event] = ()
    set_aside: list[SetAside] = field(default_factory=list)


def split_body(body: memoryview, flags: BodyFlag = BodyFlag.NONE) -> SplitBody:
    """Every event of a body, byte for byte but for line breaks between tokens, and the rest with a reason."""
    if BodyFlag.CUT in flags:
        return _all_set_aside(f"body longer than {MAX_BODY_BYTES // MIB} MiB", body)
    if BodyFlag.UNKNOWN_ENCODING in flags:
        return _all_set_aside("unknown Content-Encoding", body)
    if flags:
        try:
            body = memoryview(_decompressed(body, _WINDOW_BITS[flags]))
        except (zlib.error, ValueError) as exc:
            return _all_set_aside(f"cannot be decompressed: {exc}", body)
    return _split_json(body)


def _split_json(body: memoryview) -> SplitBody:
    texture = _Texture.of(body)
    if texture.is_too_fine or (len(body) > LONG_BODY_BYTES and not _is_countable(body)):
        return _all_set_aside("more elements than any batch of events has, or malformed and long", body)
    try:
        events: Sequence[Event] = _decode_array(body)
    except msgspec.ValidationError:
        return _single(body)
    except (msgspec.DecodeError, RecursionError):
        return _salvaged(body)
    split = _without_long(SplitBody(events))
    if not texture.is_ascii:
        split = _without_bad_text(split)
    if texture.has_line_breaks:
        split.events = [_in_one_line(event) for event in split.events]
    return split


@dataclass(frozen=True)
class _Texture:
    """Cheap facts that decide how a body is read."""

    is_too_fine: bool
    """A large body of so many elements that the list of them alone would not fit into memory."""
    is_ascii: bool
    has_line_breaks: bool

    @classmethod
    def of(cls, body: memoryview) -> _Texture:
        commas, objects, is_ascii, has_line_breaks = 0, 0, True, False
        is_large = len(body) > _HARMLESS_BYTES
        for start in range(0, len(body), MIB):
            piece = bytes(body[start : start + MIB])
            commas += piece.count(b",") if is_large else 0
            objects += piece.count(b"{") if is_large else 0
            is_ascii = is_ascii and piece.isascii()
            has_line_breaks = has_line_breaks or b"\n" in piece or b"\r" in piece
        is_too_fine = commas * _BYTES_PER_COMMA > len(body) or objects * _BYTES_PER_OBJECT > len(body)
        return cls(is_too_fine, is_ascii, has_line_breaks)


class _EventType(msgspec.Struct, gc=False):
    """What makes an object an event. Nothing else of it is built, whatever it holds."""

    eventType: msgspec.Raw = msgspec.Raw()  # noqa: N815 - as Ray spells it
    event_type: msgspec.Raw = msgspec.Raw()


_decode_type = msgspec.json.Decoder(_EventType).decode


class _Anything(msgspec.Struct, gc=False):
    """An object of which nothing is kept."""


_decode_objects = msgspec.json.Decoder(list[_Anything]).decode


def _is_countable(body: memoryview) -> bool:
    """Whether a long body is an array of so few objects that the list of them fits into memory."""
    try:
        return len(_decode_objects(body)) <= MAX_EVENTS_OF_LONG
    except (ValueError, RecursionError):
        return False


def _single(body: memoryview) -> SplitBody:
    """A JSON object that looks like an event is one; any other JSON that is no array is set aside."""
    if len(body) > MAX_EVENT_BYTES:
        return _all_set_aside(_TOO_LONG, body)
    event = bytes(body).strip()
    try:
        _check(event)
        event.decode()
    except (ValueError, RecursionError):  # malformed, or not UTF-8
        return _all_set_aside("not JSON", body)
    if not _is_event(event):
        return _all_set_aside("not an array of events", body)
    return SplitBody([_in_one_line(event)])


def _is_event(element: bytes | memoryview) -> bool:
    try:
        found = _decode_type(element)
    except (ValueError, RecursionError):
        return False
    return any(bytes(memoryview(said)[:1]) == b'"' for said in (found.eventType, found.event_type))


def _without_long(split: SplitBody) -> SplitBody:
    if all(len(memoryview(event)) <= MAX_EVENT_BYTES for event in split.events):
        return split
    good: list[Event] = []
    for event in split.events:
        if len(memoryview(event)) <= MAX_EVENT_BYTES:
            good.append(event)
        else:
            split.set_aside.append(SetAside.of(_TOO_LONG, event))
    return SplitBody(good, split.set_aside)


def _without_bad_text(split: SplitBody) -> SplitBody:
    good: list[Event] = []
    for event in split.events:
        try:
            str(event, "utf-8")
            good.append(event)
        except UnicodeDecodeError:
            split.set_aside.append(SetAside.of("not UTF-8", event))
    return SplitBody(good, split.set_aside)


def _in_one_line(event: Event) -> bytes:
    """Line breaks can only stand between tokens: inside text JSON has them escaped."""
    return bytes(event).replace(b"\r", b" ").replace(b"\n", b" ")


def _salvaged(body: memoryview) -> SplitBody:
    """The elements of an array in which something is malformed, as far as they can be told apart."""
    split = SplitBody()
    events: list[Event] = []
    for piece in _Salvage(body).pieces():
        if isinstance(piece, SetAside):
            split.set_aside.append(piece)
        else:
            events.append(_in_one_line(piece))
    split.events = events
    return _without_bad_text(split)


class _Salvage:
    """Takes an array apart, also a malformed one, without building anything of it; how much it looks at has a bound."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._looks_left = _LOOKS_PER_BYTE * len(body) + MIB

    def pieces(self) -> Iterator[bytes | SetAside]:
        body, set_aside = self._body, 0
        opened = _ARRAY.match(body)
        if opened is None:
            yield SetAside.of("not JSON", body)
            return
        position = opened.end()
        while True:
            found = _BETWEEN.match(body, position)
            position = found.end() if found else position
            if position >= len(body) or body[position] == _ARRAY_END:
                return
            if set_aside >= MAX_SET_ASIDE or self._looks_left <= 0:
                yield SetAside.of("too much of this body is malformed", body[position:])
                return
            end, problem = self._element(position)
            if problem:
                set_aside += 1
                yield SetAside.of(problem, body[position:end])
            else:
                yield bytes(body[position:end])
            position = end

    def _element(self, start: int) -> tuple[int, str]:
        """Where the element ends, and what is wrong with it if anything."""
        end = self._end_of(start)
        if end is None or not self._is_json(start, end):
            return self._next_event(start), "malformed JSON"
        return end, "" if self._body[start] == _OBJECT_START else "not an object"

    def _end_of(self, start: int) -> int | None:
        """Where the brackets that open here are closed; None where they are not, or too far away."""
        if self._body[start] not in _OPENING:
            found = _SCALAR.match(self._body, start)
            return max(found.end() if found else start, start + 1)
        depth, limit = 0, min(len(self._body), start + MAX_SALVAGED_BYTES)
        for token in _TOKEN.finditer(self._body, start, limit):
            depth += _DEPTH.get(self._body[token.start()], 0)
            if depth <= 0:
                self._looks_left -= token.end() - start
                return token.end()
        self._looks_left -= limit - start
        return None

    def _is_json(self, start: int, end: int) -> bool:
        self._looks_left -= end - start
        try:
            _check(self._body[start:end])
        except (ValueError, RecursionError):
            return False
        return True

    def _next_event(self, start: int) -> int:
        """The next place at which an event begins; objects inside a broken event are none."""
        for found in _NEXT_OBJECT.finditer(self._body, start):
            if self._looks_left <= 0:
                break
            end = self._end_of(found.end())
            if end is not None and self._is_json(found.end(), end) and _is_event(self._body[found.end() : end]):
                return found.end()
        return len(self._body)


def _decompressed(body: memoryview, window_bits: int) -> bytes:
    """All parts of a body: who compresses piece by piece sends several streams, one behind the other."""
    parts: list[bytes] = []
    left, at = MAX_DECOMPRESSED_BYTES, 0
    for _ in range(MAX_COMPRESSED_PARTS):
        stream = zlib.decompressobj(window_bits)
        while not stream.eof:
            fed = body[at : at + _FED_BYTES]
            if not fed:
                raise ValueError("cut off")
            parts.append(stream.decompress(fed, left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise ValueError("too long")
            at += len(fed) - len(stream.unused_data)
        if at == len(body):
            return b"".join(parts)
    raise ValueError("too many parts")


def _all_set_aside(reason: str, body: memoryview) -> SplitBody:
    return SplitBody(set_aside=[SetAside.of(reason, body)])
