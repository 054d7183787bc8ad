"""The collector as a real process, and what it says through its log and its metrics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bed.waiting import PATIENCE_SECONDS, wait_until

COMMAND = (sys.executable, "-m", "raykeeper.cli.main", "collector")
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "TZ")  # a test must not depend on variables of whoever runs it


class CollectorProcess:
    """One collector that may live several times, each with the same command line, environment and files."""

    def __init__(
        self, output: Path, flags: Sequence[str], environment: Mapping[str, str], command: Sequence[str] = COMMAND
    ) -> None:
        self.output = output
        self._argv = [*command, *flags]
        self._environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._life_began = 0

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def peak_bytes(self) -> int:
        """The most memory that it ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> CollectorProcess:
        """Begin a life; what it says is appended to what earlier ones said."""
        self._life_began = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as file:
            self._process = subprocess.Popen(
                self._argv, env=self._environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def kill(self) -> None:
        """End it as the kernel does when memory runs out."""
        self._running().kill()
        self._running().wait()

    def terminate(self) -> None:
        """Ask it to end, as the kubelet does."""
        self._running().send_signal(signal.SIGTERM)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Its exit code."""
        return self._running().wait(seconds)

    def end(self, seconds: float = PATIENCE_SECONDS) -> int:
        self.terminate()
        return self.wait(seconds)

    def lines(self) -> list[dict[str, Any]]:
        """Its log in this life; a line being written, and what is no line of the log, are left out."""
        text = self.output.read_bytes()[self._life_began :].decode()
        return [json.loads(line) for line in text.split("\n")[:-1] if line.startswith("{")]

    def said(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["msg"] == message]

    def wait_for(self, message: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The first line with that message, once it is there."""

        def found_or_ended() -> list[dict[str, Any]]:
            is_alive = self.is_alive  # asked first: it may say so and end between the two questions
            found = self.said(message)
            assert found or is_alive, f"it ended without saying {message!r}:\n{self.output.read_text()}"
            return found

        found = wait_until(f"the collector says {message!r}", found_or_ended, seconds)
        return found[0]

    def ask(self, path: str) -> str:
        """The body of `/metrics` or `/healthz`."""
        address = self.wait_for("listening")["addresses"][0]
        with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}{path}", timeout=PATIENCE_SECONDS) as answer:
            body: bytes = answer.read()
        return body.decode()

    def metric(self, name: str, **labels: str) -> float:
        """The value of one of its own series; 0 where it is not there yet."""
        for family in text_string_to_metric_families(self.ask("/metrics")):
            for sample in family.samples:
                if sample.name == f"raykeeper_collector_{name}" and sample.labels == labels:
                    return sample.value
        return 0.0

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was not started"
        return self._process


@contextmanager
def ended(*collectors: CollectorProcess) -> Iterator[None]:
    """Collectors that are gone after the block, however it ends."""
    try:
        yield
    finally:
        for collector in collectors:
            if collector.is_alive:
                collector.kill()
