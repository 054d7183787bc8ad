"""The bucket waits out outages for all callers together and says it once."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from bed.waiting import PATIENCE_SECONDS
from raykeeper.backoff import Backoff
from raykeeper.collector.bucket import PAUSES, Bucket
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.turns import Priority
from raykeeper.storage.errors import StoreRefused
from support.clocks import ManualClock
from support.conditions import until
from support.event_scene import MemoryStore, unavailable

QUICK = Backoff(base=0.005, limit=0.01)


def a_bucket(store: MemoryStore | None, pauses: Backoff = QUICK) -> Bucket:
    bucket = Bucket(ManualClock(), CollectorMetrics(CollectorRegistry()), pauses)
    if store is not None:
        bucket.connect(store)
    return bucket


class FailsOnce(MemoryStore):
    async def put(self, key: str, data: bytes) -> None:
        self.outage = unavailable() if not self.calls else None
        await super().put(key, data)


async def test_a_put_returns_once_the_bucket_has_it() -> None:
    store = MemoryStore()
    bucket = a_bucket(store)
    await bucket.put("key", b"data")
    assert store.objects == {"key": b"data"}
    assert [await bucket.create("key", b"other"), await bucket.create("new", b"n")] == [False, True]
    assert store.objects["key"] == b"data"
    assert bucket.is_up


async def test_puts_wait_until_a_store_is_connected() -> None:
    store, bucket = MemoryStore(), a_bucket(None)
    waiting = asyncio.create_task(bucket.put("early", b"1"))
    await asyncio.sleep(0)
    assert not bucket.is_up
    bucket.connect(store)
    await waiting
    assert store.objects == {"early": b"1"}


@pytest.mark.parametrize("outage", [unavailable(), StoreRefused("memory", "key", "403", "fix the credentials")])
async def test_an_outage_is_said_once_and_so_is_its_end(outage: Exception, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "raykeeper.collector.bucket")
    store = MemoryStore(outage=outage)
    bucket = a_bucket(store)
    puts = [asyncio.create_task(bucket.put(f"key{number}", b"x")) for number in range(20)]
    await until(lambda: store.calls > 20)
    assert (bucket.is_up, bucket.down_since) == (False, 1000.0)
    store.outage = None
    await asyncio.gather(*puts)
    assert len(store.objects) == 20
    assert bucket.is_up
    assert [line.message for line in caplog.records] == [
        "bucket does not take objects, data waits on disk",
        "bucket takes objects again",
    ]
    assert str(outage) in str(vars(caplog.records[0]))


@dataclass
class NearlyFull(MemoryStore):
    """Has room for small objects alone."""

    room: int = 10

    async def put(self, key: str, data: bytes) -> None:
        self.outage = unavailable() if len(data) > self.room else None
        await super().put(key, data)


async def test_small_objects_that_a_full_bucket_still_takes_do_not_end_the_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "raykeeper.collector.bucket")
    store = NearlyFull()
    bucket = a_bucket(store)
    large = asyncio.create_task(bucket.put("large", b"x" * 100))
    await until(lambda: store.calls > 3)
    for number in range(5):
        await bucket.put(f"small{number}", b"x")
        assert await bucket.find("large") is None
        assert not bucket.is_up
    store.room = 1000
    await large
    assert bucket.is_up
    assert [line.message for line in caplog.records] == [
        "bucket does not take objects, data waits on disk",
        "bucket takes objects again",
    ]


async def test_an_outage_is_over_once_nobody_waits_though_what_was_refused_was_given_up() -> None:
    store = NearlyFull()
    bucket = a_bucket(store)
    large = asyncio.create_task(bucket.put("large", b"x" * 100))
    await until(lambda: not bucket.is_up)
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    await bucket.put("small", b"x")
    assert bucket.is_up


async def test_a_single_failure_is_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "raykeeper.collector.bucket")
    store, metrics = FailsOnce(), CollectorMetrics(CollectorRegistry())
    bucket = Bucket(ManualClock(), metrics, QUICK)
    bucket.connect(store)
    await bucket.put("key", b"x")
    assert (store.calls, metrics.put_error_count()) == (2, 1)
    assert bucket.is_up
    assert not caplog.records


async def test_while_it_is_down_one_caller_tries_and_the_others_wait() -> None:
    store = MemoryStore(outage=unavailable())
    bucket = a_bucket(store)
    first = asyncio.create_task(bucket.put("first", b"x"))
    await until(lambda: not bucket.is_up)
    store.gate.clear()
    before = store.calls
    others = [asyncio.create_task(bucket.put(f"other{number}", b"x")) for number in range(10)]
    await until(lambda: store.calls > before)
    for _ in range(20):
        await asyncio.sleep(0.002)
    assert store.calls == before + 1
    store.outage = None
    store.gate.set()
    await asyncio.gather(first, *others)


async def test_component_logs_come_last_when_it_is_back() -> None:
    store = MemoryStore(outage=unavailable())
    bucket = a_bucket(store)
    probe = asyncio.create_task(bucket.put("probe", b"x"))
    await until(lambda: not bucket.is_up)
    puts = [asyncio.create_task(bucket.put(f"component{n}", b"x", priority=Priority.LATER)) for n in range(20)]
    await asyncio.sleep(0)
    puts += [asyncio.create_task(bucket.put(f"events{n}", b"x")) for n in range(20)]
    await asyncio.sleep(0)
    store.outage = None
    await asyncio.gather(probe, *puts)
    assert all(key.startswith("component") for key in store.order[-20:])


async def test_a_cancelled_put_lets_others_through() -> None:
    store = MemoryStore()
    bucket = a_bucket(store)
    store.gate.clear()
    stuck = [asyncio.create_task(bucket.put(f"stuck{number}", b"x")) for number in range(30)]
    await until(lambda: store.calls > 0)
    for put in stuck:
        put.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)
    store.gate.set()
    await asyncio.wait_for(bucket.put("after", b"x"), PATIENCE_SECONDS)
    assert list(store.objects) == ["after"]


async def test_a_bug_of_ours_rises_and_blocks_nobody() -> None:
    store = MemoryStore(outage=ZeroDivisionError())
    bucket = a_bucket(store)
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            await bucket.put("key", b"x")
    store.outage = None
    await bucket.put("key", b"x")


async def test_calls_that_fail_together_count_as_one_failure() -> None:
    store = MemoryStore(outage=unavailable())
    store.gate.clear()
    bucket = a_bucket(store, Backoff(base=0.2, limit=1000.0))
    puts = [asyncio.create_task(bucket.put(f"key{number}", b"x")) for number in range(8)]
    await until(lambda: store.calls == 8)
    store.gate.set()
    await until(lambda: not bucket.is_up)
    store.outage = None
    await asyncio.wait_for(asyncio.gather(*puts), PATIENCE_SECONDS)  # and not after the pause of eight failures


def test_pauses_are_at_least_a_quarter_of_a_second_and_at_most_fifteen() -> None:
    """An outage of hours costs a request every few seconds, and collectors that lost one bucket return apart."""
    assert PAUSES.delay(1, min) >= 0.25
    assert PAUSES.delay(10_000, max) <= 15
    assert PAUSES.delay(10_000, max) >= 1.5 * PAUSES.delay(10_000, min)
