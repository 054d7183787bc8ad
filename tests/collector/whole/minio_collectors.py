"""A collector beside a MinIO, and what Ray posts to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bed.ports import free_port
from bed.waiting import wait_until
from collector.ray_folders import SESSION
from raykeeper.layout.keys import LogPackKey, SessionId, parse_sealed_key
from raykeeper.layout.logs import logs_of_packs, newest_by_path, read_log
from support.collector_processes import CollectorProcess
from support.event_scene import RayClient
from support.ray_event_batches import EventMaker, body_of, line_of

TEAM = SessionId("local", "demo", SESSION)
AWAY = "bucket does not take objects, data waits on disk"
BACK = "bucket takes objects again"


def a_collector(folder: Path, environment: dict[str, str], *flags: str) -> CollectorProcess:
    own = {"RAY_TMP_ROOT": str(folder / "ray"), "POD_NAME": "demo-worker"}
    names = ["--ray-cluster-name=demo", f"--events-port={free_port()}", "--metrics-addr=127.0.0.1:0"]
    return CollectorProcess(folder / "collector.log", [*names, *flags], environment | own)


async def post_some(collector: CollectorProcess, maker: EventMaker, kept: list[bytes], batches: int = 5) -> None:
    """Batches that Ray must hear 200 for."""
    for _ in range(batches):
        assert await post_batch(collector, maker, kept) == 200


async def post_batch(collector: CollectorProcess, maker: EventMaker, kept: list[bytes]) -> int:
    """What Ray hears; events that it hears 200 for are added to `kept`."""
    port = collector.wait_for("listening for Ray")["port"]
    events = maker.events(200)
    async with RayClient(port) as ray:
        status = await ray.post(body_of(events))
    kept += map(line_of, events) if status == 200 else ()
    return status


async def until_all_is_sent(collector: CollectorProcess) -> None:
    """Return once the bucket is there again and has all events."""
    await asyncio.to_thread(collector.wait_for, BACK, 60.0)
    await asyncio.to_thread(wait_until, "all is sent", lambda: collector.metric("event_unsent_bytes") == 0)


async def until_something_is_stored(collector: CollectorProcess) -> None:
    await asyncio.to_thread(wait_until, "it is stored", lambda: collector.metric("event_segments_total") > 0)


async def until_puts_fail(collector: CollectorProcess) -> None:
    """Return once the bucket was tried several times in vain."""

    def have_failed() -> bool:
        return collector.metric("put_errors_total", cause="unavailable") >= 3

    await asyncio.to_thread(wait_until, "errors are counted", have_failed)


def stored_log(objects: dict[str, bytes], path: str) -> bytes:
    """All of the newest log file of that name; a hole fails the test."""
    packs = {key: data for key, data in objects.items() if isinstance(parse_sealed_key(key), LogPackKey)}
    stored, fetch = logs_of_packs(packs)
    log = newest_by_path(stored.values())[path]
    text, holes = read_log(log, 0, log.size, fetch)
    assert holes == []
    return text
