"""Three history servers as processes, killed at random while the receiver is away for a while: every failed job is told
of exactly once, and no secret leaves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from history.alerts.listening import Listening, listening
from history.alerts.test_watch import SECRET, a_job, put_jobs, put_running
from history.replicas.history_replicas import Replica
from raykeeper.layout.alerts import receiver_key, session_alerts_prefix
from raykeeper.layout.keys import SessionId
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore
from support.conditions import eventually
from support.history_scene import local_store

pytestmark = [pytest.mark.bed, pytest.mark.timeout(300)]

TOKEN = "t0ken-of-the-receiver"
ALERTS = """
link: https://history.example.com
timing: {{look_seconds: 0.3, settle_seconds: 0, cause_wait_seconds: 0, retry_seconds: 2, timeout_seconds: 1}}
receivers:
- {{name: ops, kind: webhook, url: "{url}/hook", bearer_env: OPS_TOKEN}}
"""
JOBS, KILLS = 12, 3


@pytest.fixture
async def receiver() -> AsyncIterator[Listening]:
    async with listening() as one:
        yield one


@pytest.fixture
async def replicas(tmp_path: Path, receiver: Listening) -> AsyncIterator[Sequence[Replica]]:
    (tmp_path / "store").mkdir()
    file = tmp_path / "alerts.yaml"
    file.write_text(ALERTS.format(url=receiver.url))
    arguments = [f"--store=file://{tmp_path}/store", f"--alerts={file}"]
    made = [Replica(tmp_path / f"alerts-{number}", {"OPS_TOKEN": TOKEN}, arguments) for number in range(3)]
    try:
        await asyncio.gather(*(replica.start() for replica in made))
        yield made
    finally:
        for replica in made:
            replica.end()


async def test_killed_servers_and_an_absent_receiver_still_make_exactly_one_alert(
    replicas: Sequence[Replica], receiver: Listening, tmp_path: Path
) -> None:
    store, dice = local_store(tmp_path / "store"), random.Random(19)
    await eventually(lambda: is_there(store, receiver_key("ops")))
    receiver.status = 503
    jobs = [a_job(f"job-{number}", ended=datetime.now(UTC)) for number in range(JOBS // 2)]
    session = await put_running(store, "train", *jobs)

    async def is_refused() -> bool:
        return receiver.refused >= 3

    await eventually(is_refused)
    for _ in range(KILLS):
        receiver.status = 503  # a server that dies between 2xx and its note of it cannot but send again
        await eventually(partial(are_noted, store, session, receiver))
        victim = dice.choice(replicas)
        victim.kill()
        receiver.status = dice.choice([200, 503])
        jobs += [a_job(f"job-{len(jobs) + number}", ended=datetime.now(UTC)) for number in range(JOBS // 2 // KILLS)]
        await put_jobs(store, session, *jobs)
        await victim.start()
    receiver.status = 200

    async def all_told() -> bool:
        return len(receiver.jobs) == JOBS

    await eventually(all_told, seconds=120)
    assert receiver.jobs == {f"job-{number}": 1 for number in range(JOBS)}
    assert len(set(receiver.keys)) == JOBS
    assert SECRET not in str(receiver.told)
    logs = str([replica.log_lines() for replica in replicas])
    assert "alert was not taken" in logs
    assert TOKEN not in logs
    assert "/hook" not in logs
    async with aiohttp.ClientSession() as http, http.get(f"{replicas[0].url}/metrics") as answer:
        assert "raykeeper_history_alerts_sent_total" in await answer.text()


async def are_noted(store: ObjectStore, session: SessionId, receiver: Listening) -> bool:
    """Whether the store knows of all that the receiver was told."""
    noted = [stat.key async for stat in store.list(session_alerts_prefix(session)) if stat.key.endswith("/sent.json")]
    return len(noted) == len(receiver.told)


async def is_there(store: ObjectStore, key: str) -> bool:
    try:
        await store.stat(key)
    except ObjectMissing:
        return False
    return True
