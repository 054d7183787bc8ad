"""The log path of a collector as a process of its own: `log_collector <Ray's folder> <spool> <store url>`.

Prints `ready` when it begins, and goes on until it is ended.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from raykeeper.clock import SystemClock
from raykeeper.collector.bucket import Bucket
from raykeeper.collector.logs.settings import LogShipperSettings
from raykeeper.collector.logs.shipper import LogShipper
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.sessions import SessionWatch
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url


async def main(root: Path, spool: Path, store_url: str) -> None:
    clock, metrics = SystemClock(), CollectorMetrics(CollectorRegistry())
    bucket = Bucket(clock, metrics)
    bucket.connect(open_store(parse_store_url(store_url, {})))
    watch = SessionWatch(root, clock)
    watch.poll()
    settings = LogShipperSettings(spool, "bench", "cluster", "pod")
    shipper = LogShipper(settings, watch, bucket, clock, metrics)
    print("ready", flush=True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch.run())
        tasks.create_task(shipper.run())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
