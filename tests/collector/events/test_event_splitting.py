"""Whatever Ray posts becomes events and pieces set aside, and a bad piece never costs its neighbours."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bed.waiting import BUSY_FACTOR
from raykeeper.collector.events import splitting
from raykeeper.collector.events.journal import BodyFlag
from raykeeper.collector.events.splitting import MAX_SET_ASIDE, SplitBody, split_body
from support.ray_event_batches import EventMaker, body_of, line_of

GOOD = EventMaker(3).events(20)


def split(body: bytes, flags: BodyFlag = BodyFlag.NONE) -> SplitBody:
    return split_body(memoryview(body), flags)


def lines(result: SplitBody) -> list[bytes]:
    return [bytes(event) for event in result.events]


def test_each_event_keeps_its_bytes() -> None:
    odd = b'{"eventType" : "X",  "n":1.50,"t":"\\u00e4\\n \xc3\xa4", "a":[1, 2 ]}'
    result = split(b" [" + odd + b" ,\t" + line_of(GOOD[0]) + b"] ")
    assert lines(result) == [odd, line_of(GOOD[0])]
    assert not result.set_aside


def test_a_pretty_printed_event_becomes_one_line() -> None:
    result = split(json.dumps(GOOD[:2], indent=2).replace("\n", "\r\n").encode())
    assert [json.loads(line) for line in lines(result)] == GOOD[:2]
    assert all(b"\n" not in line and b"\r" not in line for line in lines(result))


BROKEN = {
    "no end of an object": b'{"eventType": "X", "stateTransitions": [{"state": "A"}, {"state": "B"}',
    "no end of a text": b'{"eventType": "X", "sessionName": "s}',
    "text without quotes": b'{"eventType": X}',
    "trailing comma": b'{"eventType": "X",}',
    "line break in a text": b'{"eventType": "X\n"}',
    "control character": b'{"eventType": "X\x01"}',
    "not a number": b'{"eventType": "X", "n": 0x1F}',
    "nothing between commas and a stray bracket": b"}",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("place", [0, 7, 19])
def test_one_malformed_event_among_good_ones_is_set_aside_alone(broken: bytes, place: int) -> None:
    parts = [line_of(event) for event in GOOD]
    body = b"[" + b", ".join([*parts[:place], broken, *parts[place:]]) + b"]"
    result = split(body)
    assert set(parts) - set(lines(result)) <= {parts[place]}  # a broken end may take the one behind it along
    assert [line for line in lines(result) if line not in parts] == []
    assert result.set_aside
    assert broken[:10] in b"".join(piece.text for piece in result.set_aside)


NO_EVENTS = {
    b"": "not JSON",
    b"hello": "not JSON",
    b"\x80\x81\x82": "not JSON",
    b"17": "not an array of events",
    b'"text"': "not an array of events",
    b"null": "not an array of events",
    b'{"some": "object"}': "not an array of events",
    b"[" * 100_000: "malformed JSON",
    b'{"a":' * 100_000: "not JSON",
}


@pytest.mark.parametrize("body", NO_EVENTS, ids=lambda body: body[:12].decode("latin-1"))
def test_what_is_no_array_is_set_aside_as_a_whole(body: bytes) -> None:
    result = split(body)
    assert not result.events
    assert [piece.reason for piece in result.set_aside] == [NO_EVENTS[body]]


def test_a_single_event_without_an_array_is_kept() -> None:
    assert lines(split(line_of(GOOD[0]))) == [line_of(GOOD[0])]
    pretty = lines(split(json.dumps(GOOD[0], indent=1).encode()))
    assert [json.loads(line) for line in pretty] == [GOOD[0]]


def test_an_empty_array_holds_nothing() -> None:
    assert split(b"[]") == SplitBody([], [])


def test_an_event_that_is_not_utf_8_is_set_aside_alone() -> None:
    bad = b'{"eventType": "X", "message": "\xff\xfe"}'
    result = split(b"[" + line_of(GOOD[0]) + b"," + bad + b"," + '{"message": "ä"}'.encode() + b"]")
    assert lines(result) == [line_of(GOOD[0]), '{"message": "ä"}'.encode()]
    assert [(piece.reason, piece.text) for piece in result.set_aside] == [("not UTF-8", bad)]


def test_millions_of_tiny_elements_take_bounded_memory() -> None:
    result = split(b"[" + b"1," * 2_000_000 + b"1]")
    assert not result.events
    assert [piece.reason for piece in result.set_aside] == [
        "more elements than any batch of events has, or malformed and long"
    ]


def test_of_a_body_that_is_mostly_malformed_the_rest_is_set_aside_in_one_piece() -> None:
    result = split(b"[" + b"1," * 2000 + b"x")
    assert len(result.set_aside) == MAX_SET_ASIDE + 1
    assert result.set_aside[-1].reason == "too much of this body is malformed"


@pytest.mark.parametrize(
    ("flags", "compress"),
    [(BodyFlag.GZIP, gzip.compress), (BodyFlag.DEFLATE, zlib.compress)],
)
def test_compressed_bodies_are_read(flags: BodyFlag, compress: Any) -> None:
    body = body_of(GOOD)
    assert lines(split(compress(body), flags)) == [line_of(event) for event in GOOD]
    cut_off = split(compress(body)[:-20], flags)
    assert [piece.reason.partition(":")[0] for piece in cut_off.set_aside] == ["cannot be decompressed"]


def test_a_body_that_was_compressed_in_parts_is_read_to_its_end() -> None:
    first, second = line_of(GOOD[0]), line_of(GOOD[1])
    parts = gzip.compress(b"[" + first) + gzip.compress(b"," + second + b"]")
    assert lines(split(parts, BodyFlag.GZIP)) == [first, second]
    trailing = split(gzip.compress(body_of(GOOD)) + b"rubbish", BodyFlag.GZIP)
    assert [piece.reason.partition(":")[0] for piece in trailing.set_aside] == ["cannot be decompressed"]


def test_a_body_that_would_become_too_long_is_set_aside_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "MAX_DECOMPRESSED_BYTES", 2**20)
    bomb = gzip.compress(b" " * 2**19) * 3
    (piece,) = split(bomb, BodyFlag.GZIP).set_aside
    assert (piece.reason, piece.text) == ("cannot be decompressed: too long", bomb)


HOSTILE: dict[str, tuple[bytes, BodyFlag]] = {
    "escaped quotes without an end": (b'[{"a":"' + b'\\"' * (1 << 20), BodyFlag.NONE),
    "the same, cut inside an escape": (b'[{"a":"' + b'\\"' * (1 << 20) + b"\\", BodyFlag.NONE),
    "a long text without an end": (b'[{"a":"' + b"x" * (12 << 20), BodyFlag.NONE),
    "a long text in a malformed body": (b'[{"a":"' + b"x" * (12 << 20) + b'"},x]', BodyFlag.NONE),
    "thousands of empty gzip members": (gzip.compress(b"") * 200_000, BodyFlag.GZIP),
    "a long member behind thousands": (gzip.compress(b" ") * 9_000 + gzip.compress(b" " * (20 << 20)), BodyFlag.GZIP),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_what_was_made_to_be_slow_or_large_is_neither(hostile: tuple[bytes, BodyFlag]) -> None:
    """Of the first one 65 KB took 17 s in one call of a regular expression, and 12 MB of text took 1.5 GB."""
    body, flags = hostile
    began = time.process_time()
    split(body, flags)
    assert time.process_time() - began < 2 * BUSY_FACTOR
    tracemalloc.start()
    try:
        split(body, flags)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("flags", [BodyFlag.CUT, BodyFlag.UNKNOWN_ENCODING])
def test_what_cannot_be_read_is_set_aside(flags: BodyFlag) -> None:
    result = split(body_of(GOOD), flags)
    assert not result.events
    assert [piece.text for piece in result.set_aside] == [body_of(GOOD)]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4), max_size=6), st.booleans())
def test_every_object_of_an_array_comes_back(events: list[dict[str, Any]], is_ascii: bool) -> None:
    body = json.dumps(events, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    assert [json.loads(line) for line in lines(split(body))] == events


@given(st.lists(st.sampled_from([line_of(event) for event in GOOD] + list(BROKEN.values())), max_size=12), st.data())
def test_nothing_is_invented_whatever_is_broken(parts: list[bytes], data: st.DataObject) -> None:
    body = b"[" + b",".join(parts) + b"]"
    body = body[: data.draw(st.integers(0, len(body)))]
    whole = {line_of(event) for event in GOOD}
    assert all(line in whole for line in lines(split(body)) if b"eventId" in line)
