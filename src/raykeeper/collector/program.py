"""The collector while it runs: what starts in which order, what goes on, and how a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

import uvloop
from prometheus_client import CollectorRegistry

from raykeeper.clock import Clock, SystemClock
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.parts import Collector, Intake, find_store_settings, make_collector
from raykeeper.collector.settings import CollectorSettings
from raykeeper.collector.spoolfolder import claim_spool
from raykeeper.logs import Log
from raykeeper.settings.addresses import parse_address

log = Log("raykeeper.collector")

STOPPED, INCOMPLETE = 0, 1
RETRY_SECONDS = 5.0
"""Before a part that a bug ended is started again: the others go on, and Ray's pod stays ready."""


def serve(settings: CollectorSettings, environment: Mapping[str, str] = os.environ) -> int:
    """Collect until a signal ends it; the exit code: 0 where nothing was left behind.

    Raises `Misconfigured` for what cannot be used, such as a port that is taken.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run((_capture_once if settings.runs_once else _collect)(settings, environment))


async def _capture_once(settings: CollectorSettings, environment: Mapping[str, str]) -> int:
    from raykeeper.collector.capturing import capture_once

    return await capture_once(settings, environment)


async def _collect(settings: CollectorSettings, environment: Mapping[str, str]) -> int:
    stopping = _stop_on_signals()
    clock, metrics = SystemClock(), CollectorMetrics(CollectorRegistry())
    store_settings = find_store_settings(settings, environment)
    claim_spool(settings.spool.folder, settings.node.ray_tmp_root)
    intake = Intake(settings, clock, metrics)
    if settings.sink.is_on:
        await intake.events.start()
        log.info("listening for Ray", hosts=settings.sink.hosts, port=intake.events.port)

    from raykeeper.collector.watching import Watching  # from here on Ray can speak, so slow imports harm nobody
    from raykeeper.storage.opening import open_store

    store = open_store(store_settings)
    intake.bucket.connect(store)
    log.info("collecting", cluster=settings.cluster.name, role=settings.node.role, store=store.describe())
    collector = make_collector(settings, intake, store, clock, metrics)
    address = parse_address("--metrics-addr", settings.metrics_address)
    last_poll = collector.poller.ask_all if collector.poller else None
    # Manifests written for KubeRay know nothing of our default: it may be another container's.
    is_asked_for = settings.metrics_address != CollectorSettings.metrics_address
    async with Watching(address, metrics.registry, clock, last_poll, is_required=is_asked_for):
        return await _run_until(stopping, collector, settings, clock)


async def _run_until(stopping: asyncio.Event, collector: Collector, settings: CollectorSettings, clock: Clock) -> int:
    """Run all parts, and end them in the order that loses least."""
    from raykeeper.collector.ending import end_gracefully

    tasks = {name: asyncio.create_task(_kept_running(name, run), name=name) for name, run in _runs(collector, settings)}
    await stopping.wait()
    log.info("signal received", grace_seconds=settings.grace_seconds)
    # These two write at the end themselves; the others must go on until everything is sent.
    await _cancelled(tasks.pop(name) for name in ("poller", "recorder") if name in tasks)
    is_complete = await end_gracefully(collector, settings.grace_seconds, clock)
    await _cancelled(tasks.values())
    await collector.intake.events.stop()
    if collector.shipper is not None:
        await collector.shipper.close()
    return STOPPED if is_complete else INCOMPLETE


def _runs(collector: Collector, settings: CollectorSettings) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
    yield "sessions", collector.intake.sessions.run
    yield "recorder", collector.recorder.run
    if settings.sink.is_on:
        yield "events", collector.intake.events.run
    if collector.shipper is not None:
        yield "logs", collector.shipper.run
    if collector.poller is not None:
        yield "poller", collector.poller.run
    if collector.sampler is not None:
        yield "samples", collector.sampler.run


async def _kept_running(name: str, run: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await run()
        except Exception:
            log.exception("part of the collector failed, and is started again", part=name)
        await asyncio.sleep(RETRY_SECONDS)


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def _stop_on_signals() -> asyncio.Event:
    """Set at the first SIGTERM or SIGINT; a second one ends the process as it would any other."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopping
