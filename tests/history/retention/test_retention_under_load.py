"""Writers, readers, holders and a sweeper that is killed again and again, all at once on one store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bed.minio import BUCKET, Minio
from raykeeper.clock import SystemClock
from raykeeper.history.retention.holds import HoldFailed, hold
from raykeeper.history.retention.sweeper import Sweeper, SweepResult
from raykeeper.history.store.catalog import Catalog
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.history.store.removals import SessionRemoved
from raykeeper.layout.keys import EventSegmentKey, SessionId
from raykeeper.layout.retention import removed_key
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore
from support.retention_scene import HEAD, SmallSession, keys_of, retention_keys
from support.sweeping_process import policy_of

WAIT_SECONDS = 2.0
"""For readers; a whole session is read in a few milliseconds."""
LATE = b"late"


@dataclass
class Ledger:
    """What was written, and what became of it as far as anybody was told."""

    stays: dict[SessionId, Mapping[str, bytes]] = field(default_factory=dict)
    """Failed and running ones."""
    goes: dict[SessionId, Mapping[str, bytes]] = field(default_factory=dict)
    """Those that succeeded: held, gone, or whole because of a late write."""
    held: set[SessionId] = field(default_factory=set)
    late: set[SessionId] = field(default_factory=set)
    read: int = 0
    refused: int = 0
    kills: int = 0


@dataclass(frozen=True)
class Load:
    store: ObjectStore
    url: str
    environment: Mapping[str, str]
    seconds: float
    dice: random.Random
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self) -> None:
        """All at once, for so long; then a sweeper that is not killed finishes."""
        ends_at = time.monotonic() + self.seconds
        async with asyncio.TaskGroup() as group:
            for work in (self._write, self._write, self._read, self._read, self._hold, self._come_late, self._sweep):
                group.create_task(_until(ends_at, work))
        await self._finish()

    async def _write(self) -> None:
        """A session as a collector writes it: object by object."""
        kind = self.dice.choice(("ok", "ok", "ok", "failed", "running"))
        name = f"session_{self.dice.randrange(10**12)}"
        outcome = "" if kind == "running" else kind
        session = SmallSession(
            name, f"team-{self.dice.randrange(3)}", age=timedelta(0), outcome=outcome, has_ended=kind != "running"
        )
        objects = await session.put(self.store, datetime.now(UTC))
        (self.ledger.goes if kind == "ok" else self.ledger.stays)[session.id] = objects

    async def _read(self) -> None:
        """Whoever may open a session can read all of it, within the time that readers have."""
        catalog = Catalog(self.store, SystemClock())
        entries = (await catalog.page(200)).entries
        if not entries:
            return
        session = self.dice.choice(entries).id
        try:
            known_at = time.monotonic()
            assert await Catalog(self.store, SystemClock()).is_known(session)
            keys = [stat.key async for stat in self.store.list(session.prefix)]
            for key in keys:
                await self.store.get(key)
            self.ledger.read += 1
        except SessionRemoved:
            self.ledger.refused += 1
        except ObjectMissing:
            assert time.monotonic() - known_at > WAIT_SECONDS, f"{session} vanished under its reader"

    async def _hold(self) -> None:
        await asyncio.sleep(0.2)
        if not self.ledger.goes:
            return
        session = self.dice.choice(list(self.ledger.goes))
        clock = SystemClock()
        try:
            await hold(self.store, clock, StoreClock(self.store, clock), session, "a test", "")
            self.ledger.held.add(session)
        except HoldFailed:
            self.ledger.refused += 1

    async def _come_late(self) -> None:
        """A collector that comes back to a session that is over, whatever became of it."""
        await asyncio.sleep(0.3)
        if not self.ledger.goes:
            return
        session = self.dice.choice(list(self.ledger.goes))
        await self.store.put(EventSegmentKey(session, HEAD, time.time_ns(), 7).key, LATE)
        self.ledger.late.add(session)

    async def _sweep(self) -> None:
        """One process, killed at a random moment of its work."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "support.sweeping_process", self.url, str(WAIT_SECONDS)),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self.environment},
            cwd=Path(__file__).parents[2],
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self.dice.uniform(0.2, 3.0))
        assert process.returncode is None, "the sweeper ended by itself"
        process.send_signal(signal.SIGKILL)
        await process.wait()
        self.ledger.kills += 1

    async def _finish(self) -> None:
        policy = replace(policy_of(0))
        for _ in range(200):
            result = await Sweeper(self.store, SystemClock(), policy, "the last").sweep()
            await Sweeper(self.store, SystemClock(), policy, "the last").go_on(result_ := SweepResult())
            if not (result.intended or result.waiting or result_.waiting or result.late_objects):
                return
        raise AssertionError("there is always something to remove")


async def _until(ends_at: float, work: Callable[[], Awaitable[None]]) -> None:
    while time.monotonic() < ends_at:
        await work()


async def check(load: Load) -> None:
    """Nothing kept is lost, and nothing removed stays half."""
    store, ledger = load.store, load.ledger
    keys = await keys_of(store)
    for session, objects in ledger.stays.items():
        assert objects.keys() <= keys, f"{session} lost objects"
        for key, data in objects.items():
            assert await store.get(key) == data
    removed = 0
    for session, objects in ledger.goes.items():
        there = {key for key in keys if key.startswith(session.prefix)} | (objects.keys() & keys)
        if session in ledger.held:
            assert objects.keys() <= there, f"{session} is held and lost objects"
        elif there:
            assert objects.keys() <= there, f"{session} is there in part: {sorted(there)}"
        else:
            removed += 1
            assert await store.find(removed_key(session)) is not None
    assert await retention_keys(store, "removals/") == set()
    assert removed > 0
    assert ledger.read > 0
    assert ledger.kills > 0
    assert ledger.held


@contextlib.asynccontextmanager
async def a_load(url: str, environment: Mapping[str, str], seconds: float) -> AsyncIterator[Load]:
    store = open_store(parse_store_url(url, environment))
    load = Load(store, url, environment, seconds, random.Random(20261117))
    await load.run()
    yield load


def minio_place(minio: Minio, name: str) -> tuple[str, dict[str, str]]:
    url = f"s3://{BUCKET}/{name}-{os.getpid()}?endpoint={minio.endpoint}&path_style=true"
    return url, {"AWS_ACCESS_KEY_ID": minio.access_key, "AWS_SECRET_ACCESS_KEY": minio.secret_key}


@pytest.mark.bed
async def test_nothing_kept_is_lost_and_nothing_removed_stays_half(minio: Minio) -> None:
    async with a_load(*minio_place(minio, "load"), seconds=8.0) as load:
        await check(load)


@pytest.mark.soak
@pytest.mark.bed
async def test_the_same_for_minutes(minio: Minio) -> None:
    async with a_load(*minio_place(minio, "long-load"), seconds=240.0) as load:
        await check(load)
        assert load.ledger.kills > 20


@pytest.mark.soak
async def test_the_same_in_a_folder(tmp_path: Path) -> None:
    async with a_load(f"file://{tmp_path}", {}, seconds=30.0) as load:
        await check(load)
