"""`python -m support.sweeping_process <store> <seconds>`: sweeps again and again until it is killed.

Sessions that succeeded go as soon as they are over, after so many seconds for their readers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from datetime import timedelta

from raykeeper.clock import SystemClock
from raykeeper.history.retention.sweeper import Sweeper, SweepResult
from raykeeper.history.retention_policy import RetentionPolicy
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.retention_scene import EVERYTHING_AT_ONCE


def policy_of(wait_seconds: float) -> RetentionPolicy:
    return replace(EVERYTHING_AT_ONCE, reader_wait=timedelta(seconds=wait_seconds))


async def sweep_for_ever(url: str, wait_seconds: float) -> None:
    store = open_store(parse_store_url(url, os.environ))
    sweeper = Sweeper(store, SystemClock(), policy_of(wait_seconds), f"process {os.getpid()}")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        await sweeper.sweep()
        await sweeper.go_on(SweepResult())


if __name__ == "__main__":
    asyncio.run(sweep_for_ever(sys.argv[1], float(sys.argv[2])))
