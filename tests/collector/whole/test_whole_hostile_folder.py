"""What user code does in Ray's folder costs no history of others, and shows nothing that is not a log."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bed.waiting import wait_until
from collector.ray_folders import NODE_A
from collector.whole.hostile import HONEST_LOG, Neighbourhood, secrets
from raykeeper.collector.sessions import MAX_SESSIONS
from support.collector_processes import ended

MEMORY_BYTES = 256 << 20


def a_link_in_place_of_the_logs(there: Neighbourhood) -> None:
    (there.session / "logs").rename(there.session / "logs.bak")
    (there.session / "logs").symlink_to(secrets(there.folder))


def a_session_that_is_a_link(there: Neighbourhood) -> None:
    (there.ray / "session_x").symlink_to(secrets(there.folder).parent)


@pytest.mark.parametrize("plant", [a_link_in_place_of_the_logs, a_session_that_is_a_link])
async def test_no_file_outside_of_the_logs_is_shipped(tmp_path: Path, plant: Callable[[Neighbourhood], None]) -> None:
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        there.say(b"honest\n")
        await there.post_honest()
        await asyncio.to_thread(wait_until, "the log is stored", lambda: HONEST_LOG in there.stored.logs(NODE_A))
        plant(there)
        await there.post_honest()
        there.collector.end()
    paths = set(there.stored.logs(NODE_A))
    assert not {path for path in paths if "token" in path or "key" in path}
    assert there.stored.event_ids() == Counter(there.acknowledged)


def a_name_that_is_no_text(there: Neighbourhood) -> None:
    (there.ray / os.fsdecode(b"session_!\xff")).mkdir()


def a_name_too_long_for_a_key(there: Neighbourhood) -> None:
    (there.ray / ("session_!" + "é" * 120)).mkdir()


def a_time_that_no_calendar_has(there: Neighbourhood) -> None:
    for place in (there.session / "a", there.ray / "session_x" / "a"):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        os.utime(place, (300_000_000_000, 300_000_000_000))
    (there.ray / "session_9999-12-31_23-59-59_999999_9").mkdir()
    (there.ray / "session_0001-01-01_00-00-00_000000_9").mkdir()


def a_log_that_waits_for_a_writer(there: Neighbourhood) -> None:
    os.mkfifo(there.session / "logs" / "raylet.out")
    os.mkfifo(there.session / "logs" / "worker-fifo.out")
    os.mkfifo(there.ray / "init.log")
    os.mkfifo(there.session / f"metrics_export_port_{NODE_A}")


def a_hook_file_larger_than_memory(there: Neighbourhood) -> None:
    with (there.ray / "init.log").open("wb") as hook:
        hook.truncate(3 << 30)
    new = there.ray / "session_2026-11-16_20-09-58_472817_9"
    new.mkdir()
    (there.ray / "session_latest").unlink()
    (there.ray / "session_latest").symlink_to(new)


def ten_thousand_sessions(there: Neighbourhood) -> None:
    for number in range(10_000):
        (there.ray / f"session_{number}").mkdir()


def ten_thousand_nodes(there: Neighbourhood) -> None:
    for number in range(10_000):
        (there.session / f"metrics_agent_port_{number:056x}").touch()


def folders_in_folders(there: Neighbourhood) -> None:
    deep = there.session / "logs"
    for _ in range(200):
        deep /= "deep"
        deep.mkdir()
    (deep / "worker-deep.out").write_bytes(b"deep\n")


def thousands_of_long_names_deep_down(there: Neighbourhood) -> None:
    place = os.open(there.session / "logs", os.O_RDONLY)
    for _ in range(10):
        os.mkdir("d" * 250, dir_fd=place)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
        for number in range(2000):
            os.close(os.open(f"{number:04d}{'x' * 240}.out", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)


PLANTS = [
    a_name_that_is_no_text,
    a_name_too_long_for_a_key,
    a_time_that_no_calendar_has,
    a_log_that_waits_for_a_writer,
    a_hook_file_larger_than_memory,
    ten_thousand_sessions,
    ten_thousand_nodes,
    folders_in_folders,
    thousands_of_long_names_deep_down,
]


@pytest.mark.parametrize("plant", PLANTS)
async def test_an_odd_thing_on_disk_costs_an_honest_session_nothing(
    tmp_path: Path, plant: Callable[[Neighbourhood], None]
) -> None:
    there = Neighbourhood(tmp_path)
    with ended(there.collector):
        there.collector.start()
        await there.post_honest()
        there.say(b"before\n")
        await asyncio.to_thread(wait_until, "it beats", lambda: there.collector.metric("heartbeats_total") >= 1)
        plant(there)
        there.say(b"after\n")
        await there.post_honest()
        await asyncio.to_thread(wait_until, "the log is stored", lambda: _honest(there).endswith(b"after\n"))
        assert there.collector.peak_bytes < MEMORY_BYTES
        there.collector.end(25.0)
    assert not there.collector.said("records not kept")
    assert there.stored.event_ids() == Counter(there.acknowledged)
    end = there.stored.end(NODE_A)
    assert end is not None
    assert end.missing_event_bytes == 0
    assert there.session_count() <= MAX_SESSIONS


def _honest(there: Neighbourhood) -> bytes:
    return there.stored.logs(NODE_A).get(HONEST_LOG, b"")
