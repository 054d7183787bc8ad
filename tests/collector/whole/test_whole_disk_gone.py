"""kill -9, and the disk gone with it: the last seconds of events and logs are lost, and the test says how many."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from bed.ports import free_port
from collector.ray_folders import NODE_A, SESSION, a_port_file, a_session
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess, ended
from support.event_scene import RayClient
from support.ray_event_batches import EventMaker, body_of
from support.stored_sessions import StoredSession

SEAL_SECONDS = 0.5
USER_SECONDS = 0.5
COMPONENT_SECONDS = 1.0
SLACK_SECONDS = 6.0  # to read, compress and put, beside other tests on the same cores
BEFORE_SECONDS = 1.5 * (COMPONENT_SECONDS + SLACK_SECONDS)
"""A run longer than what may be lost, so that a collector that stores too late is found out."""
USER_LOG, COMPONENT_LOG = "worker-" + "f" * 56 + "-01000000-12.out", "raylet.out"
MUCH = "." * 2000  # while Ray's own logs say little, they are sent later

Told = dict[str, float]
"""When each line was written, or each event acknowledged, oldest first."""


def a_collector(folder: Path) -> CollectorProcess:
    flags = ["--ray-cluster-name=demo", f"--store-url=file://{folder}/store", f"--events-port={free_port()}"]
    flags += [f"--seal-age={SEAL_SECONDS}s", f"--idle-seal-age={SEAL_SECONDS}s", "--metrics-addr=127.0.0.1:0"]
    flags += [f"--user-log-interval={USER_SECONDS}s", f"--component-log-interval={COMPONENT_SECONDS}s"]
    return CollectorProcess(folder / "collector.log", flags, {"RAY_TMP_ROOT": str(folder / "ray")})


async def post_until_killed(port: int, told: Told) -> None:
    maker = EventMaker(session=SESSION, node=NODE_A)
    async with RayClient(port) as client:
        while True:
            events = maker.events(40)
            try:
                if await client.post(body_of(events)) != 200:
                    return
            except ConnectionError:
                return
            told |= dict.fromkeys((event["eventId"] for event in events), time.monotonic())
            await asyncio.sleep(0.02)  # the pace of the work


async def write_until(killed: asyncio.Event, log: Path, told: Told, filler: str = "") -> None:
    with log.open("a") as output:
        while not killed.is_set():
            line = f"line {len(told)} {filler}"
            print(line, file=output, flush=True)
            told[line] = time.monotonic()
            await asyncio.sleep(0.01)  # the pace of the work


def lost_seconds(told: Told, kept: Collection[str], killed_at: float) -> float:
    """How long before the kill the oldest of what is lost was told."""
    return killed_at - min((at for line, at in told.items() if line not in kept), default=killed_at)


async def test_with_the_disk_gone_the_last_seconds_of_events_and_logs_are_lost(tmp_path: Path) -> None:
    session, killed = a_session(tmp_path / "ray"), asyncio.Event()
    a_port_file(session, NODE_A)
    events, user, component = Told(), Told(), Told()
    collector = a_collector(tmp_path)
    with ended(collector):
        port = collector.start().wait_for("listening for Ray")["port"]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(post_until_killed(port, events))
            tasks.create_task(write_until(killed, session / "logs" / USER_LOG, user))
            tasks.create_task(write_until(killed, session / "logs" / COMPONENT_LOG, component, MUCH))
            await asyncio.sleep(BEFORE_SECONDS)  # the run itself
            collector.kill()
            killed_at = time.monotonic()
            killed.set()
    shutil.rmtree(tmp_path / "ray")
    stored = StoredSession(tmp_path / "store", SessionId("local", "demo", SESSION))
    logs = {path: text.decode().splitlines() for path, text in stored.logs(NODE_A).items()}
    lost = (
        lost_seconds(events, stored.event_ids(), killed_at),
        lost_seconds(user, set(logs[USER_LOG]), killed_at),
        lost_seconds(component, set(logs[COMPONENT_LOG]), killed_at),
    )
    print("lost are the last {:.2f} s of events, {:.2f} s of users' output, {:.2f} s of Ray's own logs".format(*lost))
    assert lost[0] < SEAL_SECONDS + SLACK_SECONDS
    assert lost[1] < USER_SECONDS + SLACK_SECONDS
    assert lost[2] < COMPONENT_SECONDS + SLACK_SECONDS
