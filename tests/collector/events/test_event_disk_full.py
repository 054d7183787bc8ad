"""A disk that is really full: 503, nothing corrupt, and all of it arrives once the bucket is back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.event_scene import MemoryStore, a_scene, stored_events, unavailable
from support.ray_event_batches import EventMaker, body_of, line_of
from support.small_disks import a_small_disk

DISK_BYTES = 2 * 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "small"
    with a_small_disk(folder, DISK_BYTES):
        yield folder


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_full_disk_refuses_keeps_and_recovers(small_disk: Path) -> None:
    store, maker, kept = MemoryStore(outage=unavailable()), EventMaker(), list[bytes]()
    async with a_scene(small_disk, store, segment_max_bytes=300_000) as scene:
        refused_in_a_row = 0
        while refused_in_a_row < 5:
            events = maker.events(300)
            if await scene.post(body_of(events)) == [200]:
                kept += map(line_of, events)
                refused_in_a_row = 0
            else:
                refused_in_a_row += 1
                await asyncio.sleep(0.1)
        assert sum(map(len, kept)) > DISK_BYTES  # sealing made room as long as it could
        store.outage = None
        await scene.until_shipped()
        events = maker.events(300)
        assert await scene.post(body_of(events)) == [200]
        assert await scene.flush() == 0
        assert sorted(stored_events(store.objects)) == sorted([*kept, *map(line_of, events)])
        assert scene.metric("spool_bytes") == 0
    assert files_in(small_disk) == []
