"""fake-gcs-server: the protocol of Google Cloud Storage, in memory."""

from __future__ import annotations

from pathlib import Path

from bed.binaries import binary
from bed.daemons import LOOPBACK
from bed.kept_ports import kept_ports
from bed.processes import Process
from bed.rest import Rest
from bed.waiting import wait_until


class FakeGcs:
    """Handle of one server in `folder`; `host` goes into STORAGE_EMULATOR_HOST."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = kept_ports(folder, ["gcs"])["gcs"]
        self.host = f"{LOOPBACK}:{port}"
        self._rest = Rest(f"http://{self.host}")
        self._arguments = ["-scheme=http", f"-host={LOOPBACK}", f"-port={port}", f"-public-host={self.host}"]

    def up(self) -> None:
        """Start it; returns once it answers."""
        command = [str(binary("fake-gcs-server")), *self._arguments, "-backend=memory"]
        process = Process("fake-gcs", command, self.folder, {})
        process.start()
        wait_until(f"fake-gcs-server ready (log: {process.log_file})", lambda: self._rest.answers("/storage/v1/b"))

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        self._rest.post("/storage/v1/b?project=bed", {"name": name})
