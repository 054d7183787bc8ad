"""Indexes of many packs in one object: what goes in comes out, in pieces of bounded size, under a name of its own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.layout import logindexes
from raykeeper.layout.keys import LogPackKey, SessionId, hour_of
from raykeeper.layout.logindexes import (
    CopiedIndex,
    DamagedLogIndexes,
    LogIndexes,
    copied_index,
    decode_log_indexes,
    pack_key,
)
from raykeeper.layout.packs import FILE_LIMIT_BYTES, FRAME_LIMIT_BYTES, Frame, Gap, PackIndex

SESSION = SessionId("team-a", "train", "session_1")
NODE = "a5094a1e700be1"
numbers = st.integers(0, FILE_LIMIT_BYTES)
lengths = st.integers(0, FRAME_LIMIT_BYTES)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
frames = st.builds(Frame, texts, texts, numbers, lengths, numbers, lengths, numbers, st.booleans())
gaps = st.builds(Gap, texts, texts, numbers, numbers, texts)
indexes = st.builds(PackIndex, st.lists(frames, max_size=3).map(tuple), st.lists(gaps, max_size=2).map(tuple))
copies = st.builds(CopiedIndex, texts, numbers, indexes)


def an_index(number: int, path: str = "raylet.out") -> CopiedIndex:
    frame = Frame(path, "1-1", number, 1, 0, 10, number)
    return copied_index(SESSION, LogPackKey(SESSION, NODE, 10**18 + number, 0).key, 100 + number, PackIndex((frame,)))


def collected(copied: Iterable[CopiedIndex]) -> LogIndexes:
    found = LogIndexes()
    for one in copied:
        assert found.add(one)
    return found


@given(st.lists(copies, max_size=6))
def test_indexes_come_out_as_they_went_in(copied: list[CopiedIndex]) -> None:
    assert decode_log_indexes(collected(copied).to_bytes()) == copied


def test_a_pack_is_named_by_its_key() -> None:
    facts = LogPackKey(SESSION, NODE, 10**18, 7)
    copied = copied_index(SESSION, facts.key, 1, PackIndex(()))
    assert (pack_key(SESSION, copied), copied.hour) == (facts.key, hour_of(facts.sealed_ns))


def test_the_same_packs_have_the_same_key_and_bytes_and_others_another_key() -> None:
    once, again, other = (collected(map(an_index, packs)) for packs in (range(5), range(5), range(1, 6)))
    assert (once.key(SESSION, NODE), once.to_bytes()) == (again.key(SESSION, NODE), again.to_bytes())
    assert once.key(SESSION, NODE) != other.key(SESSION, NODE)
    assert once.key(SESSION, NODE).packs == 5


def test_an_object_is_bounded_and_takes_an_index_of_any_size_if_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logindexes, "PIECE_BYTES", 1000)
    small, large = [an_index(number, "x" * 100) for number in range(10)], an_index(10, "x" * 3000)
    found = LogIndexes()
    taken = [one for one in small if found.add(one)]
    assert decode_log_indexes(found.to_bytes()) == taken == small[: len(taken)]
    assert 2 < len(taken) < 10
    assert not found.add(large)
    assert decode_log_indexes(collected([large]).to_bytes()) == [large]


WRITTEN = collected(map(an_index, range(100))).to_bytes()


@pytest.mark.parametrize("damaged", [b"", WRITTEN[:-9], b"x" + WRITTEN, WRITTEN[:90] + b"xx" + WRITTEN[92:]])
def test_damage_is_told(damaged: bytes) -> None:
    with pytest.raises(DamagedLogIndexes):
        decode_log_indexes(damaged)


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_a_reader(data: bytes) -> None:
    with pytest.raises(DamagedLogIndexes):
        decode_log_indexes(data)
