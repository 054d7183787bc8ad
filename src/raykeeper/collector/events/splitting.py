"""One body becomes events and what is set aside. Pure; a bad event never costs its neighbours."""

from __future__ import annotations

import json
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

MAX_SET_ASIDE = 1000
"""Pieces of one body that are set aside one by one; what follows is set aside as a whole."""
MAX_RESUMES = 10_000
"""Places of one malformed body at which reading is tried anew."""
_BYTES_PER_COMMA = 8  # Ray's events have one in 25; far more commas mean millions of tiny elements, each an object here
_HARMLESS_BYTES = MIB  # a body that cannot hold so many elements that they matter; Ray's are below it

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_scan = json.JSONDecoder().raw_decode
_BETWEEN = re.compile(r"[\s,]*")
_NEXT_OBJECT = re.compile(r"\}\s*,\s*(?=\{)")
_WINDOW_BITS = {BodyFlag.GZIP: 31, BodyFlag.DEFLATE: 15}


@dataclass(frozen=True)
class SetAside:
    """Part of a body that is no event, or cannot be filed."""

    reason: str
    text: bytes
    received_ns: int = 0


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
    if texture.commas * _BYTES_PER_COMMA > len(body):
        return _salvaged(body)
    try:
        events: Sequence[Event] = _decode_array(body)
    except msgspec.ValidationError:
        return _single(body)
    except (msgspec.DecodeError, RecursionError):
        return _salvaged(body)
    split = SplitBody(events)
    if not texture.is_ascii:
        split = _without_bad_text(split)
    if texture.has_line_breaks:
        split.events = [_in_one_line(event) for event in split.events]
    return split


@dataclass(frozen=True)
class _Texture:
    """Cheap facts that decide how a body is read."""

    commas: int
    """Counted in large bodies only."""
    is_ascii: bool
    has_line_breaks: bool

    @classmethod
    def of(cls, body: memoryview) -> _Texture:
        commas, is_ascii, has_line_breaks = 0, True, False
        is_large = len(body) > _HARMLESS_BYTES
        for start in range(0, len(body), MIB):
            piece = bytes(body[start : start + MIB])
            commas += piece.count(b",") if is_large else 0
            is_ascii = is_ascii and piece.isascii()
            has_line_breaks = has_line_breaks or b"\n" in piece or b"\r" in piece
        return cls(commas, is_ascii, has_line_breaks)


def _single(body: memoryview) -> SplitBody:
    """A JSON object that looks like an event is one; any other JSON that is no array is set aside."""
    event = bytes(body).strip()
    try:
        value = msgspec.json.decode(event)
    except (ValueError, RecursionError):  # malformed, or not UTF-8
        return _all_set_aside("not JSON", body)
    if not _is_event(value):
        return _all_set_aside("not an array of events", body)
    return SplitBody([_in_one_line(event)])


def _is_event(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("eventType", "event_type"))


def _without_bad_text(split: SplitBody) -> SplitBody:
    good: list[Event] = []
    for event in split.events:
        try:
            str(event, "utf-8")
            good.append(event)
        except UnicodeDecodeError:
            split.set_aside.append(SetAside("not UTF-8", bytes(event)))
    return SplitBody(good, split.set_aside)


def _in_one_line(event: Event) -> bytes:
    """Line breaks can only stand between tokens: inside text JSON has them escaped."""
    return bytes(event).replace(b"\r", b" ").replace(b"\n", b" ")


def _salvaged(body: memoryview) -> SplitBody:
    """The elements of an array in which something is malformed, as far as they can be told apart."""
    split = SplitBody()
    events: list[Event] = []
    for piece in _pieces(bytes(body)):
        if isinstance(piece, SetAside):
            split.set_aside.append(piece)
        else:
            events.append(_in_one_line(piece))
    split.events = events
    return _without_bad_text(split)


def _pieces(body: bytes) -> Iterator[bytes | SetAside]:
    text = body.decode("latin-1")  # a character a byte, so that positions in one are positions in the other
    if not text.lstrip().startswith("["):
        yield SetAside("not JSON", body)
        return
    position, set_aside, resumes = text.index("[") + 1, 0, 0
    while True:
        found = _BETWEEN.match(text, position)
        position = found.end() if found else position
        if position >= len(text) or text[position] == "]":
            return
        if set_aside >= MAX_SET_ASIDE or resumes >= MAX_RESUMES:
            yield SetAside("too much of this body is malformed", body[position:])
            return
        end, problem, tries = _element(text, position)
        resumes += tries
        if problem:
            set_aside += 1
            yield SetAside(problem, body[position:end])
        else:
            yield body[position:end]
        position = end


def _element(text: str, start: int) -> tuple[int, str, int]:
    """Where the element ends, what is wrong with it if anything, and how many places were tried."""
    try:
        value, end = _scan(text, start)
    except (ValueError, RecursionError):
        return _resumed(text, start)
    return end, "" if isinstance(value, dict) else "not an object", 0


def _resumed(text: str, start: int) -> tuple[int, str, int]:
    """The next place at which an event begins; objects inside a broken event are none."""
    tries = 0
    for found in _NEXT_OBJECT.finditer(text, start):
        tries += 1
        if tries > MAX_RESUMES:
            break
        try:
            value, _ = _scan(text, found.end())
        except (ValueError, RecursionError):
            continue
        if _is_event(value):
            return found.end(), "malformed JSON", tries
    return len(text), "malformed JSON", tries


def _decompressed(body: memoryview, window_bits: int) -> bytes:
    """All parts of a body: who compresses piece by piece sends several streams, one behind the other."""
    parts: list[bytes] = []
    left = MAX_BODY_BYTES // 4
    rest: bytes | memoryview = body
    while rest or not parts:
        stream = zlib.decompressobj(window_bits)
        parts.append(stream.decompress(rest, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError("too long")
        if not stream.eof:
            raise ValueError("cut off")
        rest = stream.unused_data
    return b"".join(parts)


def _all_set_aside(reason: str, body: memoryview) -> SplitBody:
    return SplitBody(set_aside=[SetAside(reason, bytes(body))])
