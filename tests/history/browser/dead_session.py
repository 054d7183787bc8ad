"""The recorded run in a store, its nodes silent for long, shown by `raykeeper history` with the pages of Ray's wheel.

Every server has a folder of its own: its port is read from its log.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bed.processes import Process
from bed.rayenv import ray_python
from bed.waiting import wait_until
from raykeeper.layout.keys import node_record_key
from raykeeper.storage.opening import open_store
from raykeeper.storage.settings.urls import parse_store_url
from support.raycapture import NODES, SESSION, RayCapture, put_into

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "history", "--bind=127.0.0.1:0")
PREFIX = f"/s/{SESSION.namespace}/{SESSION.cluster}/{SESSION.session}/"
START_SECONDS = 120.0


async def put_dead_session(capture: RayCapture, store: Path) -> None:
    """Fill the folder with what collectors stored; by its own times nobody has been heard of since 1970."""
    await put_into(open_store(parse_store_url(f"file://{store}", {})), capture, "final")
    for node in NODES:
        os.utime(store / node_record_key(SESSION, node.node_id), (0, 0))


@contextmanager
def serving_process(store: Path, folder: Path, **variables: str) -> Iterator[str]:
    """The address of the session, which ends with a slash, while a server of this store runs."""
    command = [*COMMAND, f"--store=file://{store}", f"--cache-dir={folder}/cache", f"--dashboard-dir={ray_dashboard()}"]
    server = Process("history", command, folder, variables)
    server.start()
    try:
        port = wait_until("the history server listens", lambda: _port_of(server), START_SECONDS)
        yield f"http://127.0.0.1:{port}{PREFIX}"
    finally:
        server.stop()


def ray_dashboard() -> Path:
    """The built frontend in the bed's Ray."""
    packages = ray_python().parent.parent / "lib"
    return next(packages.glob("python*/site-packages/ray/dashboard/client/build"))


def _port_of(server: Process) -> int | None:
    assert server.alive, server.last_lines()
    lines = [json.loads(line) for line in server.log_file.read_text().split("\n")[:-1]]
    return next((line["port"] for line in lines if line["msg"] == "listening"), None)
