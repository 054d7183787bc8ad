"""Opens one session twice, never seen and then from another replica's tables, and prints what that took as JSON.

usage: python -m bench.programs.ingest_session STORE_URL TASKS FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from bench.resources import tree_mb
from bench.sessions import SessionSpec
from raykeeper.clock import SystemClock
from raykeeper.history.ingest.sessions import Sessions, SessionsSettings
from raykeeper.history.query.database import Database
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from raykeeper.storage.store import ObjectStore

FIRST_PAGE = "SELECT * FROM task_list ORDER BY task_id, attempt_number LIMIT 100"
_SAMPLE_SECONDS = 0.05


class TreeMemory:
    """The most memory that this process and its children had at one time, in MB."""

    def __init__(self) -> None:
        self.peak_mb = 0.0

    async def watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, tree_mb())
            await asyncio.sleep(_SAMPLE_SECONDS)


async def measure(store: ObjectStore, spec: SessionSpec, folder: Path) -> dict[str, float]:
    memory = TreeMemory()
    watching = asyncio.create_task(memory.watch())
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder / "first"))
    start = time.monotonic()
    opened = await sessions.open(spec.id)
    shown = time.monotonic() - start
    while not sessions.is_idle(spec.id):  # noqa: ASYNC110 - an ingest tells those who opened, and nobody else
        await asyncio.sleep(_SAMPLE_SECONDS)
    ingested = time.monotonic() - start
    opened = await sessions.open(spec.id)
    assert opened.tasks == spec.tasks, f"{opened.tasks} of {spec.tasks} tasks"
    await sessions.close()
    watching.cancel()
    times = os.times()
    cold = await _cold_page(store, spec, folder / "second")
    return {
        "shown_seconds": shown,
        "ingest_seconds": ingested,
        "cpu_seconds": times.user + times.system + times.children_user + times.children_system,
        "peak_mb": memory.peak_mb,
        "cold_seconds": cold,
    }


async def _cold_page(store: ObjectStore, spec: SessionSpec, folder: Path) -> float:
    """A replica that has nothing yet, until its first page."""
    sessions = Sessions(store, SystemClock(), SessionsSettings(folder))
    database = Database(folder)
    start = time.monotonic()
    opened = await sessions.open(spec.id)
    await database.query(FIRST_PAGE, opened.tables)
    seconds = time.monotonic() - start
    await sessions.close()
    await database.close()
    return seconds


def main(url: str, tasks: str, folder: str) -> None:
    store = open_store(parse_store_url(url, os.environ))
    print(json.dumps(asyncio.run(measure(store, SessionSpec(int(tasks)), Path(folder)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
