"""However long, deep and many the names below `logs/` are: memory is bounded, and every pack can be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collector.logs.shipping import Scene
from collector.ray_folders import NODE_A, SESSION, written
from raykeeper.collector.logs import losses, reading, tracker
from raykeeper.collector.logs.losses import Losses
from raykeeper.collector.logs.tracked import Group, TrackedFile
from raykeeper.layout.packs import PATH_LIMIT, index_bytes

HONEST = "worker-" + "f" * 56 + "-01000000-12.out"
GROUP = Group(SESSION, NODE_A)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def folder_below(folder: Path, name: bytes, depth: int) -> int:
    """A descriptor of the innermost of folders in folders: their path is longer than any call takes."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    return at


def fill(folder: int, name: bytes) -> None:
    descriptor = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=folder)
    os.write(descriptor, b"evil\n")
    os.close(descriptor)


@pytest.mark.parametrize("name", [b"d" * 250, b"\xff" * 250, "\N{SNOWMAN}".encode() * 80])
@pytest.mark.parametrize("depth", [3, 4, 20, 31])
async def test_a_path_too_long_for_a_pack_costs_no_other_file(name: bytes, depth: int, scene: Scene) -> None:
    """A reader called the whole pack damaged, with all that it held of other files."""
    written(scene.logs / HONEST, b"honest")
    folder = folder_below(scene.logs, name, depth)
    fill(folder, name)
    os.close(folder)
    await scene.tick()
    assert scene.bucket.text(HONEST) == b"honest"
    assert all(len(frame.path) <= PATH_LIMIT for index in scene.bucket.indexes for frame in index.frames)


async def test_long_names_take_the_room_of_several(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 files behind 2 KB of folders took 550 MB."""
    monkeypatch.setattr(tracker, "MAX_FOLLOWED", 100)
    folder = folder_below(scene.logs, b"d" * 250, 3)
    for number in range(100):
        fill(folder, b"%03d" % number + b"x" * 200)
    os.close(folder)
    await scene.tick()
    written(scene.logs / HONEST, b"honest")
    await scene.tick()
    assert scene.bucket.text(HONEST) == b"honest"
    assert 5 < scene.shipper.file_count < 15
    assert scene.metrics.registry.get_sample_value("raykeeper_collector_log_folders_left_out") == 1


async def test_an_index_never_outgrows_what_readers_believe(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "INDEX_BYTES_MAX", 10_000)
    for number in range(100):
        written(scene.logs / f"{number:03d}-{'x' * 200}.log", b"text")
    await scene.tick()
    for number in range(100):
        (scene.logs / f"{number:03d}-{'x' * 200}.log").unlink()
    written(scene.logs / HONEST, b"honest")
    for _ in range(3):
        await scene.tick()
    indexes = scene.bucket.indexes
    assert sum(len(index.frames) for index in indexes) == 101
    assert sum(len(index.gaps) for index in indexes) == 100, "each file is told to be deleted"
    for index in indexes:
        assert sum(index_bytes(frame.path) for frame in index.frames) <= 10_000 + index_bytes("x" * 300)
        assert sum(index_bytes(gap.path) for gap in index.gaps) <= 10_000


@pytest.mark.parametrize("name", ["worker-1.out", "debug_state.txt"])
async def test_a_file_that_says_to_be_larger_than_any_costs_no_other(
    name: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`truncate -s 8E` on xfs or tmpfs: a reader believes no gap of so many bytes, nor the pack that says so."""
    monkeypatch.setattr(tracker, "MAX_FILE_BYTES", 1 << 20)
    written(scene.logs / HONEST, b"honest")
    with (scene.logs / name).open("wb") as huge:
        huge.truncate(1 << 40)
    await scene.look()
    (scene.logs / name).unlink()
    for _ in range(3):
        await scene.tick()
    assert scene.bucket.text(HONEST) == b"honest"
    gaps = [gap for index in scene.bucket.indexes for gap in index.gaps]
    assert all(gap.offset + gap.length <= 1 << 20 for gap in gaps)
    assert scene.shipper.lost_bytes <= 1 << 20


def a_lost_file(number: int) -> TrackedFile:
    file = TrackedFile(SESSION, number, f"worker-{number}.out", f"1-{number}", 0.0, node_id=NODE_A)
    file.size = 10
    return file


async def test_files_that_vanish_unread_are_named_up_to_a_bound(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "MAX_GAPS", 5)
    counted = Losses("unknown", scene.metrics)
    for number in range(8):
        counted.lost(a_lost_file(number), "deleted before it was read")
    assert counted.lost_bytes == 80
    first = counted.gaps(GROUP, 2 * index_bytes("worker-0.out"))
    assert [gap.path for gap in first] == ["worker-0.out", "worker-1.out"]
    counted.told(GROUP, first)
    counted.lost(a_lost_file(9), "deleted before it was read")
    rest = counted.gaps(GROUP, 1 << 20)
    assert [gap.path for gap in rest] == ["worker-2.out", "worker-3.out", "worker-4.out", "worker-9.out"]
    counted.told(GROUP, rest)
    assert counted.groups == ()
