"""The operator as a real process, and what it says through its log, its probes and its metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bed.control_plane import ControlPlane
from bed.waiting import PATIENCE_SECONDS, wait_until

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "operator")
FREE_PORTS = ("--metrics-addr=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")


class OperatorProcess:
    """One process; its standard output and error are one file."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Its log so far; a line being written is left out."""
        return [json.loads(line) for line in self.output.split("\n")[:-1]]

    def line(self, message: str) -> dict[str, Any] | None:
        """The first line with that message."""
        return next((line for line in self.lines() if line["msg"] == message), None)

    def wait_for(self, message: str, timeout: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The first line with that message, once it is there."""

        def found_or_ended() -> dict[str, Any] | None:
            is_alive = self.process.poll() is None  # asked first: it may say so and end between the two questions
            found = self.line(message)
            assert found or is_alive, f"it ended without saying {message!r}:\n{self.output}"
            return found

        found = wait_until(f"the operator says {message!r}", found_or_ended, timeout)
        assert found is not None
        return found

    def wait_for_end(self, timeout: float = PATIENCE_SECONDS) -> int:
        """Its exit code."""
        return self.process.wait(timeout)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.process.terminate()
        return self.wait_for_end()

    def ask(self, path: str) -> tuple[int, str]:
        """Status and body of a probe, or of `/metrics`, once it listens there."""
        purpose = "metrics address" if path == "/metrics" else "probe address"
        port = wait_until(f"the {purpose} is open", lambda: self._port(purpose), PATIENCE_SECONDS)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def port_of_metrics(self) -> int:
        port = wait_until("the metrics address is open", lambda: self._port("metrics address"), PATIENCE_SECONDS)
        assert port is not None
        return port

    def wait_ready(self) -> None:
        wait_until("the operator is ready", lambda: self.ask("/readyz")[0] == 200, PATIENCE_SECONDS)

    def metric(self, name: str, /, **labels: str) -> float | None:
        """The value of the series with exactly these labels, or None."""
        for sample in self.samples(name):
            if sample.labels == labels:
                return sample.value
        return None

    def samples(self, name: str) -> list[Sample]:
        """All series of that name."""
        families = text_string_to_metric_families(self.ask("/metrics")[1])
        return [sample for family in families for sample in family.samples if sample.name == name]

    def _port(self, purpose: str) -> int | None:
        opened = (line for line in self.lines() if line["msg"] == "listening" and line["purpose"] == purpose)
        return next((int(line["addresses"][0][1]) for line in opened), None)


class Operators:
    """Starts the operators of one test, with the identity of an administrator unless told otherwise."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._started: list[OperatorProcess] = []

    def start(
        self, *flags: str, kubeconfig: Path | None = None, command: Sequence[str | Path] = COMMAND
    ) -> OperatorProcess:
        access = f"--kubeconfig={kubeconfig or self._plane.admin_kubeconfig}"
        output = self._folder / f"operator-{len(self._started)}.log"
        with output.open("wb") as file:
            process = subprocess.Popen([*command, access, *FREE_PORTS, *flags], stdout=file, stderr=subprocess.STDOUT)
        self._started.append(OperatorProcess(process, output))
        return self._started[-1]

    def lease(self, namespace: str) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ray-operator-leader"
        return self._plane.admin.get(path)

    def kill_all(self) -> None:
        for started in self._started:
            started.process.kill()
            started.process.wait()


@contextmanager
def operators_of(plane: ControlPlane, folder: Path) -> Iterator[Operators]:
    """Operators that are gone after the test, however it ends."""
    operators = Operators(plane, folder)
    try:
        yield operators
    finally:
        operators.kill_all()


def run_command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The outcome of `raykeeper operator` with arguments that end it at once."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | variables
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=environment, timeout=PATIENCE_SECONDS, check=False
    )
