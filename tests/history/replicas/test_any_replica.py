"""Any replica, any time: servers are killed and lose their caches while people read, and no answer is wrong or short.

All share one bucket and nothing else. What is right, a calm server of its own says.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bed.minio import Minio
from bench.sessions import SessionSpec, segments, write_records
from history.replicas.history_replicas import Replica, RoundRobin
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.sources import read_store_settings
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.asking import ask
from support.collector_stores import s3_environment
from support.conditions import until
from support.whole_history import whole_server

pytestmark = [pytest.mark.bed, pytest.mark.timeout(600)]

QUESTIONS = (
    "/api/v0/tasks?limit=500",
    "/api/v0/tasks?limit=50&detail=1",
    "/api/v0/tasks?filter_keys=state&filter_predicates=%3D&filter_values=FAILED&limit=300",
    "/api/v0/tasks?filter_keys=name&filter_predicates=%3D&filter_values=step_3",
    "/api/v0/tasks/summarize",
    "/api/v0/tasks/summarize?summary_by=lineage",
    "/api/v0/nodes?detail=1",
    "/api/v0/workers",
    "/api/jobs/",
)
READERS = 4
LOSSES = 6

Answers = dict[str, Any]
"""By path."""


@pytest.fixture(params=[20_000, pytest.param(100_000, marks=pytest.mark.soak)])
def spec(request: pytest.FixtureRequest) -> SessionSpec:
    """The larger one is shown in parts before it is read."""
    return SessionSpec(tasks=request.param)


@pytest.fixture
async def store(minio: Minio, bucket: str, tmp_path: Path, spec: SessionSpec) -> ObjectStore:
    """The session in a bucket, and the same in a local folder."""
    remote = open_store(read_store_settings("s3", "", s3_environment(minio, bucket)))
    local = open_store(parse_store_url(f"file://{tmp_path}/calm-store", {}))
    for key, data in segments(spec):
        await asyncio.gather(*(one.put(key.key, data) for one in (remote, local)))
    for one in (remote, local):
        await write_records(one, spec)
    return local


@pytest.fixture
async def calm(store: ObjectStore, tmp_path: Path, spec: SessionSpec) -> Answers:
    """What a server says that nobody disturbs."""
    prefix = f"/s/{spec.id.namespace}/{spec.id.cluster}/{spec.id.session}"
    async with whole_server(store, spec.id, tmp_path / "calm") as app:
        answers = {prefix + path: await ask(app, prefix + path) for path in QUESTIONS}
    assert {answer.status for answer in answers.values()} == {200}
    return {path: answer.body for path, answer in answers.items()}


@pytest.fixture
async def replicas(minio: Minio, bucket: str, tmp_path: Path) -> AsyncIterator[list[Replica]]:
    """Three servers, gone after the test."""
    started = [Replica(tmp_path / f"replica-{number}", s3_environment(minio, bucket)) for number in range(3)]
    try:
        await asyncio.gather(*(replica.start() for replica in started))
        yield started
    finally:
        for replica in started:
            replica.end()


@pytest.fixture
async def balancer(replicas: list[Replica]) -> AsyncIterator[RoundRobin]:
    async with aiohttp.ClientSession() as http:
        yield RoundRobin(replicas, http)


async def test_no_answer_is_wrong_or_short_whatever_happens_to_replicas(
    calm: Answers, replicas: list[Replica], balancer: RoundRobin
) -> None:
    await break_ingests(calm, replicas, balancer)
    async with reading(calm, balancer) as readers:
        await lose_caches(replicas, readers)
        await kill_amid_questions(replicas[2], readers)
    assert balancer.outcomes["broken"] > 0
    for replica in replicas:
        for path, right in calm.items():
            assert (await balancer.ask_one(replica, path)).body == right
        assert [line for line in replica.log_lines() if line["msg"] == "request failed by a bug"] == []


async def break_ingests(calm: Answers, replicas: list[Replica], balancer: RoundRobin) -> None:
    """Let several ingest the session at once; one is killed at it, and one loses what it has made so far."""
    first, second, _ = replicas
    path = next(iter(calm))
    opening = [asyncio.create_task(balancer.ask(path)) for _ in range(6)]
    await until(lambda: first.is_ingesting and second.is_ingesting)
    first.kill()
    second.lose_cache()
    for answer in await asyncio.gather(*opening):
        assert not answer.is_whole or answer.body == calm[path]
    await first.start()


async def lose_caches(replicas: list[Replica], readers: Readers) -> None:
    dice = random.Random(7)
    for number in range(LOSSES):
        loser = dice.choice(replicas)
        if number % 3 == 2:
            loser.lose_cache()
        else:
            loser.lose_files(dice)
        await readers.hear_more()


async def kill_amid_questions(replica: Replica, readers: Readers) -> None:
    await until(lambda: replica.in_flight > 0)
    replica.kill()
    await readers.hear_more()
    await replica.start()
    await readers.hear_more()


@dataclass(frozen=True)
class Readers:
    """People who ask on and on, each one question at a time."""

    balancer: RoundRobin
    tasks: Sequence[asyncio.Task[None]]

    async def hear_more(self) -> None:
        """Return once they heard some more answers, or one of them a wrong one."""
        outcomes = self.balancer.outcomes
        wanted = outcomes["answered"] + 2 * READERS
        await until(lambda: outcomes["answered"] >= wanted or any(task.done() for task in self.tasks))


@asynccontextmanager
async def reading(calm: Answers, balancer: RoundRobin) -> AsyncIterator[Readers]:
    """Readers for as long as the block takes; it fails if one of them heard a wrong answer."""
    tasks = [asyncio.create_task(read(calm, balancer, random.Random(number))) for number in range(READERS)]
    yield Readers(balancer, tasks)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), outcome


async def read(calm: Answers, balancer: RoundRobin, dice: random.Random) -> None:
    """Ask on and on; every answer is the right one, or says that it is not all yet."""
    while True:
        path = dice.choice(list(calm))
        answer = await balancer.ask(path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.body}"
        assert not answer.is_whole or answer.body == calm[path], path
