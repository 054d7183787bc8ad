"""The work queue: nothing lost, nothing twice at a time, nobody starved, no deadline missed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from prometheus_client import CollectorRegistry

from bed.waiting import PATIENCE_SECONDS
from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.kube.controllers.delays import Delays
from raykeeper.kube.controllers.passes import QUICK_SECONDS
from raykeeper.kube.controllers.queue import RETRY_BACKOFF, TURN, Priority, QueueShutDown, WorkQueue
from raykeeper.kube.metrics import KubeMetrics
from support.clocks import ManualClock
from support.conditions import until

NO_JITTER = Backoff(base=1.0, limit=60.0)


def a_queue(
    clock: ManualClock | None = None, registry: CollectorRegistry | None = None, workers: int = 100
) -> WorkQueue[str]:
    """One whose keys are named as objects are; a key without a slash is of no namespace."""
    metrics, clock = KubeMetrics(registry or CollectorRegistry()), clock or ManualClock()
    return WorkQueue("test", metrics, clock, NO_JITTER, workers=workers, namespace_of=namespace_of)


def namespace_of(key: str) -> str:
    return key.rpartition("/")[0]


def taken(queue: WorkQueue[str]) -> Iterator[str]:
    """Every key that can be had now."""
    while len(queue):
        yield queue.get_nowait()


# --- handing out -----------------------------------------------------------------------------------------------------


def test_keys_come_in_the_order_they_were_first_added_and_once() -> None:
    queue = a_queue()
    for key in "abcabca":
        queue.add(key)
    assert list(taken(queue)) == ["a", "b", "c"]


def test_a_key_added_while_worked_on_is_handed_out_again_only_after_done() -> None:
    queue = a_queue()
    queue.add("a")
    assert queue.get_nowait() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert list(taken(queue)) == ["a"]
    queue.done("a")
    assert len(queue) == 0


def test_a_key_that_is_added_all_the_time_waits_behind_the_others() -> None:
    queue = a_queue()
    for key in "abc":
        queue.add(key)
    order = []
    for _ in range(6):
        key = queue.get_nowait()
        queue.add("a")
        queue.add(key)
        queue.done(key)
        order.append(key)
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_done_with_a_key_nobody_has_is_our_bug() -> None:
    with pytest.raises(KeyError):
        a_queue().done("a")


# --- priorities ------------------------------------------------------------------------------------------------------


def test_a_key_to_which_something_happened_overtakes_all_of_the_first_list() -> None:
    queue = a_queue()
    for number in range(2000):
        queue.add(f"old-{number}", Priority.LOW)
    queue.add("new")
    assert queue.get_nowait() == "new"
    assert queue.get_nowait() == "old-0"


def test_a_key_of_low_priority_to_which_something_happens_is_served_with_the_others_and_once() -> None:
    queue = a_queue()
    for key in "abc":
        queue.add(key, Priority.LOW)
    queue.add("c")
    queue.add("c", Priority.LOW)
    assert list(taken(queue)) == ["c", "a", "b"]


def test_keys_of_low_priority_do_not_starve() -> None:
    queue = a_queue()
    queue.add("low", Priority.LOW)
    order = []
    for number in range(TURN):
        queue.add(f"busy-{number}")
        order.append(queue.get_nowait())
    assert order[-1] == "low"
    assert order[:-1] == [f"busy-{number}" for number in range(TURN - 1)]


def test_awaited_news_overtakes_all_others_and_the_others_still_have_their_turns() -> None:
    queue = a_queue()
    for number in range(100):
        queue.add(f"starting-{number}")
    queue.add("seen", Priority.LOW)
    queue.add("starting-99", Priority.HIGH)
    order = [queue.get_nowait()]
    for number in range(3 * TURN):
        queue.add(f"ended-{number}", Priority.HIGH)
        order.append(queue.get_nowait())
    assert order[0] == "starting-99"
    assert sum(key.startswith("ended") for key in order) >= 2 * TURN
    assert {"starting-0", "starting-1", "seen"} <= set(order)


def test_a_retry_keeps_the_priority_and_an_event_meanwhile_raises_it() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add("a", Priority.LOW)
    queue.add_rate_limited(queue.get_nowait())
    queue.done("a")
    clock.advance(60)
    assert (queue.depth(Priority.LOW), queue.depth(Priority.NORMAL)) == (1, 0)
    queue.get_nowait()
    queue.add_after("a", 5, Priority.LOW)
    queue.add_after("a", 9)
    queue.done("a")
    clock.advance(5)
    assert (queue.depth(Priority.LOW), queue.depth(Priority.NORMAL)) == (0, 1)


def test_depth_is_told_by_priority() -> None:
    registry = CollectorRegistry()
    queue = a_queue(registry=registry)
    queue.add("a", Priority.LOW)
    labels = {"name": "test", "controller": "test"}
    assert registry.get_sample_value("workqueue_depth", {**labels, "priority": "-100"}) == 1
    assert registry.get_sample_value("workqueue_depth", {**labels, "priority": "0"}) == 0


# --- namespaces ------------------------------------------------------------------------------------------------------


def test_a_namespace_with_many_keys_does_not_keep_another_waiting() -> None:
    queue = a_queue()
    for number in range(1000):
        queue.add(f"crowd/{number}")
    queue.add("other/a")
    assert [queue.get_nowait() for _ in range(3)] == ["crowd/0", "other/a", "crowd/1"]


def test_no_more_keys_are_handed_out_than_there_are_workers_until_another_namespace_waits_for_work_that_lasts() -> None:
    clock = ManualClock()
    queue = a_queue(clock, workers=2)
    for key in "abcd":
        queue.add(key)
    assert [queue.get_nowait(), queue.get_nowait()] == ["a", "b"]
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()
    queue.done("b")
    assert queue.get_nowait() == "c"
    queue.add("other/a")
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()
    clock.advance(QUICK_SECONDS)
    assert queue.get_nowait() == "other/a", "who has the workers waits for one of its own"


def test_keys_of_a_namespace_without_places_do_not_count_as_waiting() -> None:
    """Else the turns of their priority would be for nobody, or for ever theirs."""
    clock = ManualClock()
    queue = a_queue(clock, workers=1)
    for number in range(100):
        queue.add(f"bad/{number}", Priority.HIGH)
        with contextlib.suppress(asyncio.QueueEmpty):
            queue.get_nowait()
        clock.advance(QUICK_SECONDS)
    for number in range(3 * TURN):
        queue.add(f"good/{number}")
        assert queue.get_nowait() == f"good/{number}"
        queue.done(f"good/{number}")


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_a_delayed_key_comes_at_its_deadline_and_not_before() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 10)
    clock.advance(9.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert list(taken(queue)) == ["a"]


def test_the_earliest_deadline_counts_whichever_was_asked_for_last() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    clock.advance(5)
    assert list(taken(queue)) == ["a"]
    queue.done("a")
    clock.advance(100)
    assert len(queue) == 0, "one deadline is one run"


def test_a_plain_add_leaves_the_deadline_standing() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 10)
    queue.add("a")
    assert list(taken(queue)) == ["a"]
    queue.done("a")
    clock.advance(10)
    assert list(taken(queue)) == ["a"]


def test_a_key_whose_deadline_passed_stands_before_one_added_later() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_after("a", 1)
    clock.advance(2)
    queue.add("b")
    assert list(taken(queue)) == ["a", "b"]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_delay_that_is_none_adds_at_once(seconds: float) -> None:
    queue = a_queue()
    queue.add_after("a", seconds)
    assert list(taken(queue)) == ["a"]


def test_replaced_deadlines_take_no_memory() -> None:
    delays: Delays[str] = Delays()
    for step in range(10_000):
        delays.put("a", 10_000.0 - step)
    assert len(delays._heap) < 200
    assert list(delays.pop_due(1.0)) == [("a", 1.0)]


# --- back-off --------------------------------------------------------------------------------------------------------


def test_each_failure_of_a_key_waits_longer_until_it_is_forgotten() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for failures, delay in enumerate((1, 2, 4, 8, 16, 32, 60, 60), start=1):
        queue.add_rate_limited("a")
        assert queue.failures("a") == failures
        clock.advance(delay - 0.01)
        assert len(queue) == 0
        clock.advance(0.01)
        assert list(taken(queue)) == ["a"]
        queue.done("a")
    queue.forget("a")
    assert queue.failures("a") == 0
    queue.add_rate_limited("a")
    clock.advance(1)
    assert list(taken(queue)) == ["a"]


def test_the_back_off_of_one_key_does_not_slow_another() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for _ in range(5):
        queue.add_rate_limited("a")
    queue.add_rate_limited("b")
    assert (queue.failures("a"), queue.failures("b")) == (5, 1)


def test_a_retry_comes_no_sooner_than_the_server_asked_for() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.add_rate_limited("a", at_least=30)
    clock.advance(29.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert list(taken(queue)) == ["a"]


def test_a_forgotten_key_leaves_nothing_behind() -> None:
    queue = a_queue()
    queue.add_rate_limited("a")
    queue.forget("a")
    assert not queue._failures


@given(failures=st.integers(1, 12))
def test_the_default_back_off_grows_with_every_failure_whatever_the_jitter(failures: int) -> None:
    latest = RETRY_BACKOFF.delay(failures, uniform=max)
    earliest_next = RETRY_BACKOFF.delay(failures + 1, uniform=min)
    assert latest < earliest_next


# --- waiting workers -------------------------------------------------------------------------------------------------


async def test_a_waiting_worker_gets_a_key_as_soon_as_it_is_added() -> None:
    queue = a_queue()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await worker == "a"


async def test_a_waiting_worker_gets_a_delayed_key_by_the_timer_alone() -> None:
    queue = WorkQueue[str]("test", KubeMetrics(CollectorRegistry()), SystemClock())
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after("later", 3600)
    queue.add_after("sooner", 0.01)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await worker == "sooner"


async def test_a_timer_that_rings_before_the_deadline_is_set_again() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after("a", 0.001)
    queue._on_timer()  # the event loop's clock may be ahead of ours
    assert queue._timer is not None
    clock.advance(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await worker == "a"


async def test_a_worker_that_is_cancelled_hands_its_call_on() -> None:
    queue = a_queue()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")  # calls the first worker ...
    workers[0].cancel()  # ... which goes away before it can take the key
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await workers[1] == "a"
    assert workers[0].cancelled()


async def test_a_cancelled_worker_is_not_called() -> None:
    queue = a_queue()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    workers[0].cancel()
    queue.add("a")
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await workers[1] == "a"
    assert workers[0].cancelled()
    assert not queue._getters


async def test_a_waiting_worker_gets_a_key_once_the_work_on_another_lasts() -> None:
    queue = WorkQueue[str](
        "test", KubeMetrics(CollectorRegistry()), SystemClock(), workers=1, namespace_of=namespace_of
    )
    queue.add("slow/a")
    assert queue.get_nowait() == "slow/a"
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("slow/b")
    queue.add("next/a")
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await worker == "next/a"


async def test_a_waiting_worker_gets_a_key_once_another_is_done() -> None:
    queue = a_queue(workers=1)
    queue.add("a")
    queue.get_nowait()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("b")
    queue.done("a")  # by somebody who takes no other key
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await worker == "b"


async def test_nothing_runs_while_nobody_waits() -> None:
    queue = a_queue()
    queue.add_after("a", 1)
    assert queue._timer is None


# --- shutting down ---------------------------------------------------------------------------------------------------


async def test_shutting_down_releases_every_waiting_worker() -> None:
    queue = a_queue()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after("a", 3600)
    queue.shut_down()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [QueueShutDown] * 3


def test_a_queue_that_was_shut_down_hands_out_and_takes_nothing() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    for key in "ab":
        queue.add(key)
    queue.get_nowait()
    queue.add("a")
    queue.add_after("c", 1)
    queue.shut_down()
    queue.done("a")
    queue.add("d")
    queue.add_after("e", 1)
    queue.add_rate_limited("f")
    clock.advance(10)
    assert len(queue) == 0
    with pytest.raises(QueueShutDown):
        queue.get_nowait()


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_tell_depth_latency_and_work_in_progress() -> None:
    clock, registry = ManualClock(), CollectorRegistry()
    queue = a_queue(clock, registry)

    def value(metric: str) -> float | None:
        priority = {"priority": "0"} if metric == "workqueue_depth" else {}
        return registry.get_sample_value(metric, {"name": "test", "controller": "test", **priority})

    for key in "aab":
        queue.add(key)
    queue.add_rate_limited("c")
    assert value("workqueue_depth") == 2
    assert value("workqueue_adds_total") == 2
    assert value("workqueue_retries_total") == 1
    clock.advance(3)
    assert value("workqueue_depth") == 3, "a key whose deadline came counts before anyone asks for it"
    queue.get_nowait()
    clock.advance(2)
    queue.get_nowait()
    queue.get_nowait()
    assert value("workqueue_queue_duration_seconds_sum") == 3 + 5 + 4
    clock.advance(1)
    assert value("workqueue_unfinished_work_seconds") == 3 + 1 + 1
    assert value("workqueue_longest_running_processor_seconds") == 3
    for key in "abc":
        queue.done(key)
    assert value("workqueue_work_duration_seconds_sum") == 5
    assert value("workqueue_unfinished_work_seconds") == 0
    assert value("workqueue_longest_running_processor_seconds") == 0


# --- any order of calls ----------------------------------------------------------------------------------------------

KEYS = st.sampled_from("abcde")
NAMESPACED_KEYS = st.sampled_from(["a/a", "a/b", "a/c", "b/a", "c/a"])


class AnyUse(RuleBasedStateMachine):
    """Any order of calls, against a model that only knows what was promised."""

    @initialize()
    def start(self) -> None:
        self.clock = ManualClock()
        self.queue = a_queue(self.clock)
        self.owed: set[str] = set()  # added and not handed out since
        self.deadlines: dict[str, float] = {}
        self.working: list[str] = []
        self.line: list[str] = []  # who is owed and not worked on, in order

    def _owe(self, key: str) -> None:
        if key not in self.owed:
            self.owed.add(key)
            if key not in self.working:
                self.line.append(key)

    def _owe_due(self) -> None:
        now = self.clock.steady()
        due = sorted((at, key) for key, at in self.deadlines.items() if at <= now)
        for _, key in due:
            del self.deadlines[key]
            self._owe(key)

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self._owe(key)

    @rule(key=KEYS, seconds=st.integers(1, 20))
    def add_after(self, key: str, seconds: int) -> None:
        # Odd fractions keep deadlines of different keys apart, so that their order is known.
        at = self.clock.steady() + seconds + ord(key) / 1000
        self.queue.add_after(key, at - self.clock.steady())
        self.deadlines[key] = min(at, self.deadlines.get(key, at))

    @rule(seconds=st.integers(1, 10))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self._owe_due()

    @rule()
    def take(self) -> None:
        if not self.line:
            with pytest.raises(asyncio.QueueEmpty):
                self.queue.get_nowait()
            return
        key = self.queue.get_nowait()
        assert key not in self.working, "a key is with one worker only"
        assert key == self.line.pop(0), "first come, first served"
        self.owed.remove(key)
        self.working.append(key)

    @precondition(lambda self: self.working)
    @rule(which=st.integers(0, 4))
    def finish(self, which: int) -> None:
        key = self.working.pop(which % len(self.working))
        self.queue.done(key)
        if key in self.owed:
            self.line.append(key)

    @invariant()
    def nobody_is_forgotten(self) -> None:
        assert len(self.queue) == len(self.line)

    def teardown(self) -> None:
        """In the end every key that is owed comes, once."""
        self.clock.advance(1000)
        owed = self.owed | set(self.deadlines)
        for key in self.working:
            self.queue.done(key)
        assert sorted(taken(self.queue)) == sorted(owed)


AnyUse.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestAnyUse = AnyUse.TestCase


@settings(max_examples=50, deadline=None)
@given(
    adds=st.lists(st.tuples(NAMESPACED_KEYS, st.integers(0, 3)), max_size=60),
    workers=st.integers(1, 4),
    spare=st.integers(0, 4),
    pauses=st.lists(st.integers(0, 3), min_size=1, max_size=10),
)
def test_workers_on_a_loop_never_share_a_key_and_see_every_change(
    adds: list[tuple[str, int]], workers: int, spare: int, pauses: list[int]
) -> None:
    """Each add writes a version; when all is quiet the last version of every key was read after it was written."""
    asyncio.run(_run_workers(adds, workers, spare, pauses))


async def _run_workers(adds: list[tuple[str, int]], workers: int, spare: int, pauses: list[int]) -> None:
    queue = a_queue(workers=workers)
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    busy: set[str] = set()

    async def work(number: int) -> None:
        while True:
            key = await queue.get()
            assert key not in busy
            busy.add(key)
            assert len(busy) <= workers
            read[key] = written[key]
            await _turns(pauses[number % len(pauses)])
            busy.remove(key)
            queue.done(key)

    tasks = [asyncio.create_task(work(number)) for number in range(workers + spare)]
    for version, (key, turns) in enumerate(adds):
        written[key] = version
        queue.add(key)
        await _turns(turns)
    await until(lambda: not len(queue) and not busy)
    queue.shut_down()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [QueueShutDown] * (workers + spare)
    assert read == written


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
