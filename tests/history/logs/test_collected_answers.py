"""What is collected changes no answer, whatever became of the packs and of the objects since."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from raykeeper.history.logs.collected import COLLECTED_FROM
from raykeeper.layout.keys import LogPackKey
from raykeeper.layout.packs import Gap, PackWriter
from support.counting_stores import CountingStore
from support.history_scene import HEAD_ID, SEALED_NS, SESSION
from support.log_scene import collections, facts, looked

paths = st.sampled_from(["raylet.out", "raylet.out.1", "worker.err"])
generations = st.sampled_from(["1-1", "2-2", "3-1"])
small = st.integers(0, 6)
some_frames = st.lists(st.tuples(paths, generations, small, small, small, st.booleans()), max_size=3)
some_gaps = st.lists(st.builds(Gap, paths, generations, small, small, st.sampled_from(["lost", "deleted"])), max_size=2)
fates = st.sampled_from(["covered", "covered", "late", "gone", "damaged", "damaged late"])


@dataclass(frozen=True)
class Pack:
    """What a pack holds, and what becomes of it once some are collected."""

    frames: list[tuple[str, str, int, int, int, bool]]
    gaps: list[Gap]
    fate: str

    def to_bytes(self) -> bytes:
        writer = PackWriter()
        for path, generation, offset, length, read_ns, is_whole in self.frames:
            writer.add(path, generation, offset, b"x" * length, read_ns, is_whole=is_whole)
        for gap in self.gaps:
            writer.add_gap(gap)
        return writer.to_bytes()


@examples(max_examples=40, deadline=None)
@given(
    packs=st.lists(st.builds(Pack, some_frames, some_gaps, fates), min_size=COLLECTED_FROM, max_size=40),
    is_object_damaged=st.booleans(),
)
def test_answers_are_the_same_with_and_without_collected_indexes(packs: list[Pack], *, is_object_damaged: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), packs, is_object_damaged=is_object_damaged))


async def compare(folder: Path, packs: list[Pack], *, is_object_damaged: bool) -> None:
    put_packs(folder, (pack for pack in packs if "late" not in pack.fate), packs)
    await looked(CountingStore(folder))
    put_packs(folder, packs, packs)
    for number, pack in enumerate(packs):
        if pack.fate == "gone":
            place(folder, number).unlink()
        elif "damaged" in pack.fate:
            place(folder, number).write_bytes(b"no pack")
    for key in collections(folder) if is_object_damaged else ():
        (folder / key).write_bytes(b"wrong")
    with_collected = await looked(CountingStore(folder))
    for key in collections(folder):
        (folder / key).unlink()
    assert facts(with_collected) == facts(await looked(CountingStore(folder)))


def put_packs(folder: Path, some: Iterable[Pack], packs: list[Pack]) -> None:
    for pack in some:
        path = place(folder, next(number for number, one in enumerate(packs) if one is pack))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack.to_bytes())


def place(folder: Path, number: int) -> Path:
    return folder / LogPackKey(SESSION, HEAD_ID, SEALED_NS + number, 0).key
