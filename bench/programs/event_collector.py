"""The event path of a collector as a process of its own: `event_collector <folder> <store url> [setting=value ...]`.

Prints `ready <port>` once it listens. SIGTERM makes it flush and end; then it prints the bytes that are left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.collector.bucket import Bucket
from raykeeper.collector.events.limits import EventSettings
from raykeeper.collector.events.path import EventPath
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.logs import LogSettings, set_up_logs

FLUSH_SECONDS = 60.0


class NoDirectory:
    """A node without a session directory: events say themselves where they belong."""

    def node_at(self, session: str, moment_ns: int) -> str | None:  # noqa: ARG002 - the protocol's signature
        return None

    def node_of(self, session: str) -> str | None:  # noqa: ARG002 - the protocol's signature
        return None

    def current_session(self) -> str | None:
        return None


async def main(folder: Path, store_url: str, changes: dict[str, int | float]) -> None:
    set_up_logs(LogSettings())
    clock, metrics = SystemClock(), CollectorMetrics(CollectorRegistry())
    settings = EventSettings("bench", "cluster", "pod", folder, **{"port": 0, **changes})  # type: ignore[arg-type]  # of the command line
    bucket = Bucket(clock, metrics, Backoff(base=0.5, limit=1.0, jitter=0.3))
    path = EventPath(settings, bucket, NoDirectory(), clock, metrics)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await path.start()
    print("ready", path.port, flush=True)
    connect(bucket, store_url)
    running = asyncio.create_task(path.run())
    await ended.wait()
    print("left", await path.flush(clock.steady() + FLUSH_SECONDS), flush=True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await path.stop()


def connect(bucket: Bucket, store_url: str) -> None:
    from raykeeper.storage.opening import open_store
    from raykeeper.storage.settings.urls import parse_store_url

    bucket.connect(open_store(parse_store_url(store_url, os.environ)))


def parse_changes(arguments: list[str]) -> dict[str, int | float]:
    pairs = (argument.split("=") for argument in arguments)
    return {name: float(value) if "." in value else int(value) for name, value in pairs}


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], parse_changes(sys.argv[3:])))
