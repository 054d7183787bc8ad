"""The controller loop: who runs when, and what each kind of failure leads to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from bed.waiting import PATIENCE_SECONDS
from raykeeper.backoff import Backoff
from raykeeper.errors import InvalidSpec, Unavailable
from raykeeper.kube.controllers.controller import CANCEL_SECONDS, Controller, ControllerSettings
from raykeeper.kube.controllers.failures import LASTING_SECONDS
from raykeeper.kube.controllers.passes import QUICK_SECONDS
from raykeeper.kube.controllers.queue import Priority, WorkQueue
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.errors import Conflict, Forbidden, NotLeading
from raykeeper.kube.metrics import KubeMetrics
from support.clocks import ManualClock
from support.conditions import until

Step = Requeue | BaseException | Callable[[], Awaitable[Requeue]]


def namespace_of(key: str) -> str:
    return key.rpartition("/")[0]


class Bench:
    """A controller whose reconcile plays a script per key, then succeeds; on a clock moved by hand."""

    def __init__(self, workers: int = 1, settings: ControllerSettings | None = None) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        metrics = KubeMetrics(self.registry)
        self.queue: WorkQueue[str] = WorkQueue(
            "test", metrics, self.clock, Backoff(base=1.0, limit=60.0), workers=workers, namespace_of=namespace_of
        )
        self.controller = Controller("test", self._reconcile, self.queue, metrics, self.clock, settings)
        self.scripts: dict[str, list[Step]] = {}
        self.runs: list[str] = []
        self.busy = 0

    def script(self, key: str, *steps: Step) -> None:
        self.scripts[key] = list(steps)
        self.queue.add(key)

    async def _reconcile(self, key: str) -> Requeue:
        self.runs.append(key)
        self.busy += 1
        try:
            script = self.scripts.get(key)
            step = script.pop(0) if script else Requeue.never()
            if isinstance(step, BaseException):
                raise step
            return step if isinstance(step, Requeue) else await step()
        finally:
            self.busy -= 1

    async def settled(self) -> None:
        """Return once every key that can run now has run."""
        await until(lambda: not len(self.queue) and not self.queue.passes)

    async def after(self, seconds: float) -> list[str]:
        """The keys that run within the next `seconds`."""
        await self.settled()
        before = len(self.runs)
        self.clock.advance(seconds)
        self.queue.wake()
        await self.settled()
        return self.runs[before:]

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, {"controller": "test", **labels}) or 0.0


@asynccontextmanager
async def a_bench(
    workers: int = 2, deadline_seconds: float | None = None, shutdown_seconds: float = 5.0
) -> AsyncIterator[Bench]:
    bench = Bench(workers, ControllerSettings(deadline_seconds, shutdown_seconds))
    task = asyncio.create_task(bench.controller.run())
    try:
        yield bench
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


# --- when a key comes next -------------------------------------------------------------------------------------------


def test_a_controller_that_has_done_nothing_yet_counts_zero_failures() -> None:
    registry = Bench().registry
    for counter in ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics"):
        assert registry.get_sample_value(f"controller_runtime_{counter}_total", {"controller": "test"}) == 0
    for result in ("success", "error", "requeue", "requeue_after"):
        labels = {"controller": "test", "result": result}
        assert registry.get_sample_value("controller_runtime_reconcile_total", labels) == 0


async def test_a_key_that_is_done_does_not_come_back() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.never())
        assert await bench.after(10_000) == []
        assert bench.runs == ["a"]
        assert bench.metric("controller_runtime_reconcile_total", result="success") == 1


async def test_a_key_comes_back_after_the_seconds_it_asked_for() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.after(30))
        assert await bench.after(29) == []
        assert await bench.after(1) == ["a"]
        assert bench.metric("controller_runtime_reconcile_total", result="requeue_after") == 1


async def test_a_key_comes_back_at_the_moment_it_asked_for() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.at(bench.clock.now() + timedelta(minutes=1)))
        assert await bench.after(59) == []
        assert await bench.after(1) == ["a"]


async def test_no_moment_is_never() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.at(None))
        assert await bench.after(10_000) == []


async def test_a_routine_look_comes_behind_what_happened() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.routine(300))
        assert await bench.after(299) == []
        bench.clock.advance(1)
        assert bench.queue.depth(Priority.LOW) == 1


@pytest.mark.parametrize("answer", [Requeue.now(), Requeue.after(0), Requeue.after(-5)])
async def test_a_key_that_is_not_finished_comes_back_later_each_time(answer: Requeue) -> None:
    async with a_bench() as bench:
        bench.script("a", answer, answer, answer)
        assert await bench.after(1) == ["a"]
        assert await bench.after(1) == []
        assert await bench.after(1) == ["a"]
        assert await bench.after(4) == ["a"]
        assert bench.metric("controller_runtime_reconcile_total", result="requeue") == 3


async def test_a_moment_that_has_passed_does_not_make_a_key_spin() -> None:
    async with a_bench() as bench:
        bench.script("a", Requeue.at(bench.clock.now() - timedelta(days=1)))
        await bench.settled()
        assert bench.runs == ["a"]
        assert await bench.after(1) == ["a"]


# --- what a failure leads to -----------------------------------------------------------------------------------------


async def test_a_failing_key_does_not_stop_another() -> None:
    async with a_bench(workers=1) as bench:
        bench.script("bad", *[ValueError("boom")] * 3)
        bench.script("good", Requeue.after(1))
        await bench.settled()
        assert bench.runs == ["bad", "good"]
        assert "good" in await bench.after(1)


async def test_a_bug_is_logged_with_its_traceback_once_counted_and_retried_with_back_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_bench() as bench:
        bench.script("a", ValueError("one"), ValueError("two"), ValueError("three"))
        for seconds in (1, 2, 4):
            assert await bench.after(seconds) == ["a"]
        assert lines(caplog, logging.ERROR) == ["reconcile failed by a bug"]
        assert "ValueError: one" in caplog.text
        assert bench.metric("controller_runtime_reconcile_panics_total") == 3
        assert bench.metric("controller_runtime_reconcile_errors_total") == 3
        assert bench.metric("controller_runtime_reconcile_total", result="error") == 3


async def test_success_resets_the_back_off_and_a_bug_that_returns_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with a_bench() as bench:
        bench.script("a", ValueError("one"), ValueError("one"), Requeue.after(100), ValueError("one"))
        assert await bench.after(1) == ["a"]
        assert await bench.after(2) == ["a"]
        assert lines(caplog, logging.INFO) == ["reconcile succeeds again"]
        assert await bench.after(100) == ["a"]
        assert await bench.after(1) == ["a"]
        assert len(lines(caplog, logging.ERROR)) == 2


async def test_an_invalid_object_is_left_alone_until_it_changes_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_bench() as bench:
        bench.script("a", *[InvalidSpec("NoHead", "a has no head group")] * 2)
        assert await bench.after(10_000) == []
        bench.queue.add("a")
        await bench.settled()
        assert bench.runs == ["a", "a"]
        assert lines(caplog, logging.WARNING) == ["object is invalid and left alone until it changes"]
        assert bench.metric("controller_runtime_terminal_reconcile_errors_total") == 2
        assert bench.metric("controller_runtime_reconcile_panics_total") == 0


async def test_an_outage_is_retried_no_sooner_than_asked_and_warned_of_once_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_bench() as bench:
        bench.script("a", *[Unavailable("API server", "busy", retry_after=LASTING_SECONDS)] * 3)
        assert await bench.after(LASTING_SECONDS - 1) == []
        assert lines(caplog, logging.WARNING) == []
        assert await bench.after(1) == ["a"]
        assert lines(caplog, logging.WARNING) == ["reconcile keeps failing"]
        assert await bench.after(LASTING_SECONDS) == ["a"]
        assert len(lines(caplog, logging.WARNING)) == 1
        assert bench.metric("controller_runtime_reconcile_panics_total") == 0


async def test_an_outage_is_over_for_a_key_half_a_minute_after_its_end_a_refusal_may_take_longer() -> None:
    away = Unavailable("API server", "failed calling webhook")
    refused = Forbidden("POST /pods", 403, "Forbidden", "exceeded quota")
    async with a_bench() as bench:
        bench.script("waits", *[away] * 8)
        for seconds in (1, 2, 4, 8, 16, 30, 30, 30):
            assert await bench.after(seconds - 0.5) == []
            assert await bench.after(0.5) == ["waits"]
        bench.script("lacks quota", *[refused] * 7)
        for seconds in (1, 2, 4, 8, 16, 32, 60):
            assert await bench.after(seconds) == ["lacks quota"]


async def test_a_conflict_is_retried_soon_and_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with a_bench() as bench:
        bench.script("a", Conflict("PATCH /pods/a", 409, "Conflict", "changed"))
        assert await bench.after(1) == ["a"]
        assert caplog.records == []


async def test_a_refusal_is_one_sentence_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with a_bench() as bench:
        bench.script("a", *[Forbidden("POST /pods", 403, "Forbidden", "no role")] * 3)
        await bench.after(1)
        await bench.after(2)
        assert lines(caplog, logging.WARNING) == ["reconcile was refused"]
        assert "Traceback" not in caplog.text


async def test_failures_of_parallel_work_are_judged_by_their_members(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    conflicts = [Conflict("POST /pods", 409, "Conflict", "changed") for _ in range(2)]
    async with a_bench() as bench:
        bench.script("a", ExceptionGroup("creates", conflicts))
        assert await bench.after(1) == ["a"]
        assert caplog.records == []


async def test_a_controller_that_does_not_lead_stops_quietly(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench()
    bench.script("a", NotLeading("write withheld"))
    bench.script("b")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await bench.controller.run()
    assert bench.runs == ["a"]
    assert caplog.records == []


# --- reconciles that hang or are cancelled ---------------------------------------------------------------------------


async def hang() -> Requeue:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_reconcile_that_hangs_is_cancelled_reported_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    async with a_bench(deadline_seconds=0.01) as bench:
        bench.script("a", hang)
        await bench.settled()
        assert await bench.after(1) == ["a"]
        assert "reconcile of a was cancelled after 0.01 s" in caplog.text
        assert "in hang" in caplog.text, "the report shows where it hung"
        assert bench.controller.problem() is None


async def test_a_time_out_inside_a_reconcile_is_not_taken_for_its_deadline(caplog: pytest.LogCaptureFixture) -> None:
    async with a_bench(deadline_seconds=600) as bench:
        bench.script("a", TimeoutError("inner"))
        await bench.settled()
        assert "was cancelled" not in caplog.text
        assert "inner" in caplog.text


async def test_a_reconcile_cancelled_from_within_does_not_end_its_worker(caplog: pytest.LogCaptureFixture) -> None:
    async with a_bench(workers=1) as bench:
        bench.script("a", asyncio.CancelledError())
        assert await bench.after(1) == ["a"]
        assert "cancelled from within" in caplog.text
        assert bench.controller.problem() is None


async def test_a_reconcile_that_ignores_its_cancellation_is_a_problem_of_the_controller() -> None:
    release = asyncio.Event()

    async def stubborn() -> Requeue:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return Requeue.never()

    async with a_bench(deadline_seconds=0.01) as bench:
        bench.script("a", stubborn)
        await until(lambda: bench.busy == 1)
        bench.clock.advance(0.01 + CANCEL_SECONDS + 0.01)
        problem = bench.controller.problem()
        assert problem is not None
        assert "goes on though it was cancelled" in problem
        release.set()
        await bench.settled()


# --- workers, starting and stopping ----------------------------------------------------------------------------------


async def test_as_many_keys_are_worked_on_at_once_as_there_are_workers() -> None:
    release = asyncio.Event()

    async def wait() -> Requeue:
        await release.wait()
        return Requeue.never()

    async with a_bench(workers=3) as bench:
        for key in "abcde":
            bench.script(key, wait)
        await until(lambda: bench.busy == 3)
        assert bench.metric("controller_runtime_active_workers") == 3
        assert bench.metric("controller_runtime_max_concurrent_reconciles") == 3
        assert bench.runs == ["a", "b", "c"]
        release.set()
        await bench.settled()
        assert bench.runs == ["a", "b", "c", "d", "e"]
        assert bench.metric("controller_runtime_active_workers") == 0
        assert bench.metric("controller_runtime_reconcile_time_seconds_count") == 5


@pytest.mark.parametrize("workers", [1, 16])
async def test_reconciles_of_a_namespace_that_all_hang_leave_the_workers_to_the_others(workers: int) -> None:
    async with a_bench(workers, shutdown_seconds=0.01) as bench:
        for number in range(200):
            bench.script(f"bad/{number}", hang)
        bench.script("good/a")
        for _ in range(200):
            bench.clock.advance(QUICK_SECONDS)
            bench.queue._on_timer()
            await asyncio.sleep(0)
        await until(lambda: "good/a" in bench.runs)
        assert bench.runs.index("good/a") <= workers, "it waits for nobody but those that came before"
        assert bench.busy == workers, "one namespace has no more than these"
        for number in range(10 * workers):
            bench.script(f"good/{number}")
            await until(lambda: bench.runs[-1].startswith("good") and bench.busy == workers)


async def test_shutdown_lets_running_reconciles_finish_and_starts_no_other() -> None:
    release = asyncio.Event()
    finished = []

    async def slow() -> Requeue:
        await release.wait()
        finished.append("a")
        return Requeue.never()

    bench = Bench(settings=ControllerSettings(shutdown_seconds=60))
    task = asyncio.create_task(bench.controller.run())
    bench.script("a", slow)
    bench.script("b")
    await until(lambda: bench.busy == 1)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["a"]
    assert bench.runs == ["a"]


async def test_shutdown_cuts_off_what_takes_too_long(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with a_bench(shutdown_seconds=0.01) as bench:
            bench.script("a", hang)
            await until(lambda: bench.busy == 1)
    assert bench.busy == 0
    assert lines(caplog, logging.WARNING) == ["running reconciles were cut off at shutdown"]


async def test_a_second_cancellation_ends_the_patience_of_the_first() -> None:
    bench = Bench(settings=ControllerSettings(shutdown_seconds=600))
    task = asyncio.create_task(bench.controller.run())
    bench.script("a", hang)
    await until(lambda: bench.busy == 1)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert bench.busy == 0


async def test_a_controller_is_well_before_it_starts_and_while_it_works_but_not_once_it_ended() -> None:
    bench = Bench()
    assert bench.controller.problem() is None
    task = asyncio.create_task(bench.controller.run())
    bench.script("a", Requeue.never())
    await until(lambda: bench.runs == ["a"])
    await bench.settled()
    assert bench.controller.problem() is None
    bench.queue.shut_down()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task
    assert bench.controller.problem() == "a worker of controller test has ended"


async def test_a_worker_that_breaks_takes_the_controller_with_it() -> None:
    bench = Bench(workers=2)

    async def break_the_queue() -> Requeue:
        bench.queue.done("a")  # so that the worker's own `done` fails
        return Requeue.never()

    bench.script("a", break_the_queue)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(KeyError):
            await bench.controller.run()
    assert bench.controller.problem() is not None
