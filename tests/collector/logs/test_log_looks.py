"""Quiet files are looked at less often, but each within a bound, and all of them at the end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.logs.shipping import Scene
from collector.ray_folders import NODE_A, a_port_file, a_session, written
from raykeeper.collector.logs.looks import (
    QUIET_LOOK_SECONDS,
    QUIET_SECONDS,
    SILENT_LOOK_SECONDS,
    SILENT_SECONDS,
    Look,
    Scope,
)
from raykeeper.collector.logs.tracked import TrackedFile

NOW_NS = 10_000 * 10**9
TICK_SECONDS = 5.0
FILES = 600
EARLIER = "session_2026-11-14_10-00-00_000000_9"


def files_quiet_for(seconds: float, name: str = "worker-{}.out") -> list[TrackedFile]:
    files = [TrackedFile("s", inode, name.format(inode), "g", 0.0) for inode in range(FILES)]
    for file in files:
        file.mtime_ns = NOW_NS - int(seconds * 10**9)
    return files


def looks(files: list[TrackedFile], count: int, tick_seconds: float = TICK_SECONDS) -> list[list[TrackedFile]]:
    """Which of them `count` looks in a row take in."""
    return [Look(Scope.USER, number, NOW_NS, tick_seconds).due(files, is_past=False) for number in range(count)]


@pytest.mark.parametrize(
    ("quiet_seconds", "within_seconds"),
    [(0, TICK_SECONDS), (QUIET_SECONDS + 1, QUIET_LOOK_SECONDS), (SILENT_SECONDS + 1, SILENT_LOOK_SECONDS)],
)
def test_every_file_is_looked_at_once_within_its_bound(quiet_seconds: float, within_seconds: float) -> None:
    files, count = files_quiet_for(quiet_seconds), int(within_seconds / TICK_SECONDS)
    taken = looks(files, count)
    assert sorted(file.inode for look in taken for file in look) == list(range(FILES))
    assert [len(look) for look in taken] == [FILES / count] * count


def test_a_longer_interval_of_the_users_makes_nobody_wait_for_several() -> None:
    files = files_quiet_for(SILENT_SECONDS + 1)
    assert looks(files, 1, tick_seconds=60.0) == [files]


def test_rays_own_logs_wait_for_their_look_and_the_last_one_takes_in_all() -> None:
    users, components = files_quiet_for(SILENT_SECONDS + 1), files_quiet_for(SILENT_SECONDS + 1, "raylet.{}.out")
    counts = {
        scope: len(Look(scope, 1, NOW_NS, TICK_SECONDS).due(users + components, is_past=False)) for scope in Scope
    }
    assert counts == {Scope.USER: FILES / 6, Scope.ALL: FILES + FILES / 6, Scope.LAST: 2 * FILES}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    await scene.shipper.close()


def silent_files(logs: Path, clock_seconds: float) -> list[Path]:
    files = [written(logs / f"worker-{number}.out", b"one\n") for number in range(12)]
    for file in files:
        say(file, clock_seconds - SILENT_SECONDS - 100, b"")
    return files


def say(file: Path, at: float, text: bytes = b"two\n") -> None:
    """Something is written into a file; its time is by the clock of the scene."""
    with file.open("ab") as output:
        output.write(text)
    os.utime(file, (at, at))


async def test_what_silent_files_say_is_seen_within_half_a_minute(scene: Scene) -> None:
    files = silent_files(scene.logs, scene.clock.now().timestamp())
    await scene.tick()
    for file in files:
        say(file, scene.clock.now().timestamp() - SILENT_SECONDS)
    for _ in range(int(SILENT_LOOK_SECONDS / TICK_SECONDS)):
        await scene.look(after=TICK_SECONDS)
    assert scene.shipper.unsent_bytes == len(files) * len(b"two\n")


async def test_what_files_of_a_past_session_say_is_seen_with_rays_own_logs(scene: Scene) -> None:
    earlier = a_session(scene.root, EARLIER)
    a_port_file(earlier, NODE_A, at=900)
    (scene.root / "session_latest").unlink(missing_ok=True)
    (scene.root / "session_latest").symlink_to(scene.session)
    files = silent_files(earlier / "logs", scene.clock.now().timestamp())
    await scene.tick()
    assert scene.watch.current_session() == scene.session.name
    for file in files:
        say(file, scene.clock.now().timestamp() - SILENT_SECONDS)
    await scene.look(after=30)
    assert scene.shipper.unsent_bytes == len(files) * len(b"two\n")


async def test_the_last_look_finds_what_silent_files_said_since_theirs(scene: Scene) -> None:
    files = silent_files(scene.logs, scene.clock.now().timestamp())
    await scene.tick()
    for file in files:
        say(file, scene.clock.now().timestamp() - SILENT_SECONDS)
    assert await scene.shipper.flush(scene.clock.steady() + 30) == ()
    assert {scene.bucket.text(file.name) for file in files} == {b"one\ntwo\n"}
