"""The token bucket keeps its promise whatever the timing, and the queue before it is fair."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from bed.waiting import BUSY_FACTOR
from raykeeper.clock import SystemClock
from raykeeper.kube.http.ratelimit import RateLimiter, TokenBucket
from support.clocks import ManualClock
from support.conditions import until

pauses = st.lists(st.floats(0, 5, allow_subnormal=False), min_size=1, max_size=200)


@given(qps=st.floats(0.1, 1000), burst=st.integers(1, 50), pauses=pauses)
def test_no_stretch_of_time_sees_more_than_burst_and_rate_allow(qps: float, burst: int, pauses: list[float]) -> None:
    bucket, now, taken = TokenBucket(qps, burst, now=0.0), 0.0, []
    for pause in pauses:
        now += pause
        if bucket.take(now) == 0:
            taken.append(now)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            allowed = burst + qps * (taken[last] - taken[first])
            assert last - first + 1 <= allowed * (1 + 1e-9) + 1e-6


@given(qps=st.floats(0.1, 1000), burst=st.integers(1, 50), takes=st.integers(1, 100))
def test_the_wait_it_names_is_enough_and_no_more_than_one_token_takes(qps: float, burst: int, takes: int) -> None:
    bucket, now = TokenBucket(qps, burst, now=0.0), 0.0
    for _ in range(takes):
        wait = bucket.take(now)
        assert wait <= 1 / qps
        if wait:
            now += wait * (1 + 1e-9)
            assert bucket.take(now) <= 1e-9 / qps


def test_a_clock_that_stands_still_gives_the_burst_and_no_more() -> None:
    bucket = TokenBucket(qps=10, burst=3, now=7.0)
    assert [bucket.take(7.0) for _ in range(4)] == [0, 0, 0, 0.1]


def test_a_negative_rate_means_no_limit() -> None:
    bucket = TokenBucket(qps=-1, burst=1, now=0.0)
    assert not any(bucket.take(0.0) for _ in range(1000))


async def test_waiters_go_in_the_order_they_came() -> None:
    limiter, order = RateLimiter(qps=1000, burst=1, clock=SystemClock()), list[int]()

    async def wait(number: int) -> None:
        await limiter.acquire()
        order.append(number)

    await asyncio.gather(*(wait(number) for number in range(30)))
    assert order == sorted(order)


async def test_whoever_gives_up_leaves_its_turn_to_the_next() -> None:
    limiter = RateLimiter(qps=5, burst=1, clock=SystemClock())
    await limiter.acquire()
    quitters = [asyncio.create_task(limiter.acquire()) for _ in range(1000)]
    await asyncio.sleep(0)
    patient = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    for quitter in quitters:
        quitter.cancel()
    # With their turns still queued, this would take 1,000 / 5 = 200 seconds.
    await until(patient.done)


async def test_the_time_spent_waiting_is_told() -> None:
    limiter = RateLimiter(qps=100, burst=1, clock=SystemClock())
    assert await limiter.acquire() == 0
    assert 0 < await limiter.acquire() < BUSY_FACTOR


async def test_tokens_come_back_while_the_machine_is_suspended() -> None:
    clock = ManualClock()
    limiter = RateLimiter(qps=1, burst=2, clock=clock)
    await limiter.acquire()
    await limiter.acquire()
    clock.advance(3600)
    assert [await limiter.acquire() for _ in range(2)] == [0, 0]
