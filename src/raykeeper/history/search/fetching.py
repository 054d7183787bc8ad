"""Fetches the frames of a batch with as few requests as their places allow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from raykeeper.history.search.stretches import Stretch
from raykeeper.layout.packs import Frame
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_GAP_BYTES = 128 * 1024  # between two frames: reading over it takes less time than a second request
_READS_AT_ONCE = 8


@dataclass
class PackRange:
    """Frames of one pack that are read with one request."""

    pack: str
    start: int
    end: int
    frames: list[Frame] = field(default_factory=list)


def pack_ranges(batch: Iterable[Stretch]) -> Iterator[PackRange]:
    """Requests for all frames of the batch. Pure."""
    ordered = sorted(batch, key=lambda stretch: stretch.place)
    for pack, group in groupby(ordered, key=lambda stretch: stretch.piece.pack):
        current: PackRange | None = None
        for stretch in group:
            frame = stretch.piece.frame
            if current is None or frame.position - current.end > _GAP_BYTES:
                if current:
                    yield current
                current = PackRange(pack, frame.position, frame.position)
            current.frames.append(frame)
            current.end = max(current.end, frame.position + frame.size)
        if current:
            yield current


class Fetcher:
    """Reads from one store, a few ranges at a time for all who ask."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)

    async def fetch(self, batch: Iterable[Stretch]) -> dict[tuple[str, int], bytes | str]:
        """The bytes of each frame by its place, or why they are not to be had."""
        found = await asyncio.gather(*map(self._range, pack_ranges(batch)))
        return {place: data for one in found for place, data in one.items()}

    async def _range(self, wanted: PackRange) -> dict[tuple[str, int], bytes | str]:
        try:
            async with self._reads:
                data = await self._store.read_range(wanted.pack, wanted.start, wanted.end - wanted.start)
        except ObjectMissing as exc:
            return {(wanted.pack, frame.position): str(exc) for frame in wanted.frames}
        at = wanted.start
        return {
            (wanted.pack, frame.position): data[frame.position - at : frame.position - at + frame.size]
            for frame in wanted.frames
        }
