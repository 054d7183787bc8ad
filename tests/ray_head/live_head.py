"""A real Ray head of its own folder and ports, with token authentication and nobody who takes its events."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.ports import free_port
from bed.processes import Process, kill_all
from bed.rayenv import ray_python
from support.ray_clusters import PATIENT_START, start_ray

TOKEN = "t0ken-of-this-test"  # a token of Ray's must be long enough to be one


@dataclass(frozen=True)
class LiveHead:
    """Where it is."""

    root: Path
    """Ray's temporary folder: as short as can be, because its sockets lie below it."""
    address: str
    gcs_port: int
    metrics_port: int
    python: Path

    @property
    def session(self) -> Path:
        return (self.root / "session_latest").resolve()


@contextmanager
def live_head(folder: Path, environment: dict[str, str] | None = None, *flags: str) -> Iterator[LiveHead]:
    """A head that has started, and is gone with all its processes afterwards. Its pid and log are in `folder`."""
    root = Path(tempfile.mkdtemp(prefix="rk-"))
    python = ray_python()
    ports = [free_port() for _ in range(5)]
    head = LiveHead(root, f"http://127.0.0.1:{ports[0]}", ports[1], ports[2], python)
    command = [*_command(head, ports), *flags]
    process = Process("ray", command, folder, {**_environment(python), **(environment or {})})
    try:
        start_ray(process, lambda: bool(list(head.root.glob("session_*/metrics_export_port_*"))))
        yield head
    finally:
        process.stop(timeout=1.0)  # its own end takes 30 s, and no test looks at it
        kill_all(folder)
        shutil.rmtree(root, ignore_errors=True)


def _command(head: LiveHead, ports: Sequence[int]) -> list[str | Path]:
    return [
        head.python,
        head.python.with_name("ray"),
        *("start", "--head", "--block", "--disable-usage-stats"),
        f"--dashboard-port={ports[0]}",
        f"--port={head.gcs_port}",
        f"--metrics-export-port={head.metrics_port}",
        f"--dashboard-agent-listen-port={ports[3]}",
        f"--ray-client-server-port={ports[4]}",
        *("--num-cpus=2", "--object-store-memory=100000000", f"--temp-dir={head.root}"),
    ]


def _environment(python: Path) -> dict[str, str]:
    return {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",  # jobs are shell commands that say `python`
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_enable_ray_event": "1",
        "RAY_enable_core_worker_ray_event_to_aggregator": "1",
        **PATIENT_START,
        "TZ": "Asia/Kathmandu",  # 5:45 from UTC, so that local time is taken for UTC nowhere
    }
