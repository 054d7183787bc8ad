"""`raykeeper history` as a process over a bucket, and its answers about one session."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bed.control_plane import ControlPlane
from bed.processes import Process
from bed.rest import Rest
from bed.waiting import wait_until
from e2e.collected_scene import PodBucket
from raykeeper.layout.keys import SessionId

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "history", "--bind=127.0.0.1:0", "--storage-backend=s3")
START_SECONDS = 120.0


@dataclass(frozen=True)
class History:
    """A running server."""

    server: Rest

    def of(self, session: SessionId) -> SessionHistory:
        """The history of one session, once the server has read it."""
        found = SessionHistory(self.server, f"/s/{session.namespace}/{session.cluster}/{session.session}")
        wait_until(f"{session} is read", lambda: found.ask("/api/v0/tasks")["data"]["result"]["total"], START_SECONDS)
        return found


@dataclass(frozen=True)
class SessionHistory:
    """What it says about one session, where that session's own dashboard was asked before."""

    server: Rest
    prefix: str

    def ask(self, path: str, **query: str) -> Any:
        return self.server.get(self.prefix + (f"{path}?{urlencode(query)}" if query else path))

    def text(self, path: str, **query: str) -> bytes:
        return self.server.raw("GET", self.prefix + (f"{path}?{urlencode(query)}" if query else path))


@contextmanager
def history_process(bucket: PodBucket, folder: Path, *flags: str) -> Iterator[History]:
    """A server that shows this bucket, with its cache in `folder`."""
    server = Process("history", [*COMMAND, f"--cache-dir={folder}/cache", *flags], folder, bucket.variables)
    server.start()
    try:
        port = wait_until("the history server listens", lambda: _port_of(server), START_SECONDS)
        yield History(Rest(f"http://127.0.0.1:{port}"))
    finally:
        server.stop()


def observing(plane: ControlPlane, namespace: str) -> tuple[str, ...]:
    """Flags of a server that records what Kubernetes says about one namespace."""
    namespaces = f"--kubernetes-namespaces={namespace}", f"--kubernetes-lease-namespace={namespace}"
    return "--kubernetes-facts=on", f"--kubeconfig={plane.admin_kubeconfig}", *namespaces


def _port_of(server: Process) -> int | None:
    assert server.alive, server.last_lines()
    lines = [json.loads(line) for line in server.log_file.read_text().split("\n")[:-1]]
    return next((line["port"] for line in lines if line["msg"] == "listening"), None)
