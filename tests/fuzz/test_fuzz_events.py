"""Whatever is posted to the sink, or left in a journal, becomes lines and pieces set aside: nothing else happens."""

from __future__ import annotations

import itertools

from fuzz.fuzzing import walk
from raykeeper.collector.events.filing import Filer
from raykeeper.collector.events.journal import BodyFlag, read_journal
from raykeeper.collector.events.splitting import split_body
from support.event_scene import Directory

JSON_WORDS = [b"{", b"}", b"[", b"]", b",", b'"', b"\\u", b"[[", b"},{", b'"eventType":"X"', b'"sessionName":"', b"1e9"]


def split_and_filed(body: bytes) -> None:
    """Every encoding a client may name, on the same bytes."""
    for flags in (BodyFlag.NONE, BodyFlag.GZIP, BodyFlag.DEFLATE):
        split = split_body(memoryview(body), flags)
        lines = [bytes(event) for event in split.events]
        assert all(b"\n" not in line and b"\r" not in line for line in lines)
        for line in lines:
            line.decode()
        if not flags:
            assert sum(map(len, lines)) + sum(len(piece.text) for piece in split.set_aside) <= len(body)
        filer = Filer(Directory({"s": "a" * 56}, "s"))
        filer.add(split, 1)
        filed = list(itertools.chain.from_iterable(filer.filing.events.values()))
        assert len(filed) + len(filer.filing.set_aside) == len(lines) + len(split.set_aside)


def test_any_body_is_split_into_lines_and_pieces_set_aside() -> None:
    assert walk("splitting", split_and_filed, words=JSON_WORDS) > 10


def test_any_journal_is_read_up_to_its_first_damage() -> None:
    def read(data: bytes) -> None:
        records = list(read_journal(memoryview(data)))
        assert sum(len(record.body) for record in records) <= len(data)

    assert walk("journals", read) > 10
