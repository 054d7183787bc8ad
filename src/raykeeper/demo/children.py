"""The programs of a demo: each with a log file, ended whatever happens, and missed at once when one dies by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from raykeeper.demo.errors import DemoFailed
from raykeeper.demo.leftovers import MARK, kill_leftovers

LAST_LINES = 15
END_SECONDS = 10.0
"""For each program at the end of a demo that is not interrupted again; Ray takes half of it."""
_LOOK_SECONDS = 0.1
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Child:
    """One running program."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.name = name
        self._process = process
        self._log_file = log_file
        self.is_expected_to_end = False

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where one killed it."""
        return self._process.poll()

    @property
    def last_lines(self) -> str:
        lines = self._log_file.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    def ask_to_end(self) -> None:
        """SIGTERM, after which its end is no surprise."""
        self.is_expected_to_end = True
        if self.exit_code is None:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL to it and its process group, which is its own; nothing happens where it has ended."""
        if self.exit_code is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Children:
    """All programs of one run. As a context it ends them, and what they left, however it is left itself."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**environment, MARK: str(folder)}
        self._children: list[Child] = []
        self._is_hurried = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        previous = {number: signal.signal(number, self._hurry) for number in ENDING_SIGNALS}
        try:
            self._end_all()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Child:
        """Start it in a session of its own, so that Ctrl-C reaches us alone and the order of the end is ours."""
        log_file = self._folder / f"{name.replace(' ', '-')}.log"
        with log_file.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own programs and Ray, without a shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self._environment, **(environment or {})},
                start_new_session=True,
            )
        child = Child(name, process, log_file)
        self._children.append(child)
        return child

    def wait_until(self, is_true: Callable[[], bool], seconds: float, what: str, of: Child) -> None:
        """Wait for a condition. Raises DemoFailed at the deadline, or as soon as any program ends that should not."""
        deadline = time.monotonic() + seconds
        while not is_true():
            self.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"{what} took more than {seconds:.0f} s; {of.name} is at fault", of.last_lines)
            time.sleep(_LOOK_SECONDS)

    def check(self) -> None:
        """Raises DemoFailed for a program that ended by itself."""
        for child in self._children:
            if child.exit_code is not None and not child.is_expected_to_end:
                raise DemoFailed(f"{child.name} ended with code {child.exit_code}", child.last_lines)

    def _end_all(self) -> None:
        """All at once: none of them needs another for its end, and a person is waiting."""
        for child in self._children:
            child.ask_to_end()
        deadline = time.monotonic() + END_SECONDS
        while any(child.exit_code is None for child in self._children):
            if self._is_hurried or time.monotonic() > deadline:
                break
            time.sleep(_LOOK_SECONDS)
        for child in self._children:
            child.kill()
        kill_leftovers(self._folder)

    def _hurry(self, _: int, __: FrameType | None) -> None:
        """Asked a second time to end: what still runs is killed."""
        self._is_hurried = True
