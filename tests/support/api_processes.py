"""The API server as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import ServerPorts
from bed.ports import free_port
from bed.rest import Rest
from bed.waiting import PATIENCE_SECONDS, wait_until

COMMAND = (sys.executable, "-m", "raykeeper.cli.main")


@dataclass(frozen=True)
class ApiProcess:
    """One process; its standard output and error are one file."""

    process: subprocess.Popen[bytes]
    output_file: Path
    ports: ServerPorts

    @property
    def output(self) -> str:
        return self.output_file.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Its log so far; a line being written is left out."""
        return [json.loads(line) for line in self.output.split("\n")[:-1]]

    @property
    def rest(self) -> Rest:
        return Rest(f"http://{LOOPBACK}:{self.ports.http}")

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def api_server_on(
    plane: ControlPlane,
    folder: Path,
    *flags: str,
    kubeconfig: Path | None = None,
    http_port: int | None = None,
    **variables: str,
) -> Iterator[ApiProcess]:
    """Ours, once it is ready; as an administrator unless another kubeconfig is given."""
    ports = ServerPorts(http_port or free_port(), free_port())
    addresses = (f"--httpPortFlag={LOOPBACK}:{ports.http}", f"--rpcPortFlag={LOOPBACK}:{ports.grpc}")
    command = [*COMMAND, "apiserver", *addresses, *flags]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig or plane.admin_kubeconfig), **variables}
    output = folder / f"apiserver-{ports.http}.log"
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environment) as process:
        try:
            server = ApiProcess(process, output, ports)
            wait_until("the API server is ready", lambda: _is_ready(server), PATIENCE_SECONDS)
            yield server
        finally:
            process.kill()


def _is_ready(server: ApiProcess) -> bool:
    assert server.process.poll() is None, f"the API server ended:\n{server.output}"
    return server.rest.answers("/readyz")
