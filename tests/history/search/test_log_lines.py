"""Lines found in packs are those that reading whole files finds, however the files were cut and shipped."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import tempfile
import tracemalloc
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raykeeper.history.logs.store import LogStore
from raykeeper.history.search.log_lines import LogSearch, Step
from raykeeper.history.search.match import make_matcher
from raykeeper.history.search.model import LogPlace, SearchRequest
from raykeeper.storage.store import ObjectStore
from support.clocks import ManualClock
from support.history_scene import HEAD_ID, SESSION, WORKER_ID, PackBuilder, local_store

Found = set[tuple[str, str, int]]
"""Node, path and offset of each line."""

LINES = st.lists(st.sampled_from(["", "a", "needle", "Needle here", "x needle y needle", "ÄRGER nee", "dle", "zz" * 9]))
FILES = st.dictionaries(
    st.sampled_from(["worker-1.out", "old/raylet.out", "events/event_GCS.log"]),
    st.tuples(LINES, st.booleans()).map(lambda told: ("\n".join(told[0]) + "\n" * told[1]).encode()),
    min_size=1,
)
NODES = st.dictionaries(st.sampled_from([HEAD_ID, WORKER_ID]), FILES, min_size=1)
QUESTIONS = st.sampled_from(
    [
        SearchRequest("needle"),
        SearchRequest("nEEdle", ignores_case=True),
        SearchRequest("ärger", ignores_case=True),
        SearchRequest("ne+dle( |$)", is_regex=True),
        SearchRequest("^$", is_regex=True),
        SearchRequest("^NEEDLE$", is_regex=True, ignores_case=True),
    ]
)


def plainly_found(nodes: dict[str, dict[str, bytes]], wanted: SearchRequest) -> Found:
    """The same by reading every line of every file."""
    return {
        (node_id, path, offset)
        for node_id, files in nodes.items()
        for path, text in files.items()
        for offset, line in lines_of(text)
        if is_hit(line.decode(), wanted)
    }


def lines_of(text: bytes) -> list[tuple[int, bytes]]:
    lines, at = [], 0
    for line in text.splitlines(keepends=True) if b"\n" in text else [text] * bool(text):
        lines.append((at, line.rstrip(b"\n")))
        at += len(line)
    return lines


def is_hit(line: str, wanted: SearchRequest) -> bool:
    if wanted.is_regex:
        return re.search(wanted.words, line, re.IGNORECASE * wanted.ignores_case) is not None
    return wanted.words.lower() in line.lower() if wanted.ignores_case else wanted.words in line


async def ship(store: ObjectStore, nodes: dict[str, dict[str, bytes]], chance: random.Random) -> None:
    """Every file in pieces, some of them twice, in packs whose order is not quite that of the pieces."""
    for node_id, files in nodes.items():
        pieces = [piece for path, text in files.items() for piece in cut(path, text, chance)]
        pieces.sort(key=lambda piece: piece[1] + chance.randrange(30))
        packs = PackBuilder(store, node_id=node_id)
        for path, start, data in pieces:
            packs.add(path, data, offset=start)
            if chance.random() < 0.3:
                await packs.put()
        await packs.put()


def cut(path: str, text: bytes, chance: random.Random) -> list[tuple[str, int, bytes]]:
    borders = sorted({0, len(text), *(chance.randrange(len(text) + 1) for _ in range(chance.randrange(8)))})
    pieces = list(itertools.pairwise(borders))
    pieces += [(max(0, start - chance.randrange(9)), end) for start, end in pieces if chance.random() < 0.3]
    return [(path, start, text[start:end]) for start, end in pieces or [(0, 0)]]


async def found_by(search: LogSearch, start: LogPlace | None = None) -> Found:
    """Every step is also begun anew from its own place, as another request does."""
    found: Found = set()
    place: LogPlace | None = start or LogPlace()
    while place is not None:
        step = await first_step(search, place)
        hits = {(hit.node_id, hit.run.stored.path, hit.span[0]) for hit in step.hits}
        assert not hits & found
        found |= hits
        place = step.behind
    return found


async def first_step(search: LogSearch, place: LogPlace) -> Step:
    steps = search.steps(place)
    try:
        return await anext(steps, Step(place, None, (), 0))
    finally:
        await steps.aclose()


async def found_in_one_go(search: LogSearch) -> Found:
    hits = [hit async for step in search.steps() for hit in step.hits]
    found = {(hit.node_id, hit.run.stored.path, hit.span[0]) for hit in hits}
    assert len(found) == len(hits)
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NODES, QUESTIONS, st.integers(0, 2**32), st.sampled_from([1, 40, 1 << 20]))
def test_found_is_what_a_plain_search_finds(
    nodes: dict[str, dict[str, bytes]], wanted: SearchRequest, seed: int, batch_bytes: int
) -> None:
    async def compare() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = local_store(Path(folder))
            await ship(store, nodes, random.Random(seed))
            logs = LogStore(store, ManualClock())
            search = LogSearch(logs, SESSION, wanted, make_matcher(wanted), batch_bytes=batch_bytes)
            expected = plainly_found(nodes, wanted)
            assert await found_in_one_go(search) == expected
            assert await found_by(search) == expected
            assert search.skipped.reasons == {}

    asyncio.run(compare())


async def test_memory_does_not_grow_with_the_logs(tmp_path: Path) -> None:
    store, frame = local_store(tmp_path), b"a line of some log that says nothing at all\n" * 5_000
    packs = PackBuilder(store)
    for number in range(400):
        packs.add("worker-1.out", frame, offset=number * len(frame))
        if number % 50 == 49:
            await packs.put()
    wanted = SearchRequest("needle", ignores_case=True)
    search = LogSearch(LogStore(store, ManualClock()), SESSION, wanted, make_matcher(wanted))
    tracemalloc.start()
    try:
        searched = sum([step.text_bytes async for step in search.steps()])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert searched == 400 * len(frame) > 80_000_000
    assert peak < 50_000_000
