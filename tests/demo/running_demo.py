"""A demo as a person starts it: a process, its output so far, and what belongs to it on this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.rayenv import ray_python
from bed.waiting import wait_until

RAYKEEPER = Path(sys.executable).with_name("raykeeper")
IN_THE_BACKGROUND = ("/bin/sh", "-c", 'trap \'\' INT; exec "$0" "$@"')
"""As a shell starts what ends with `&`: without Ctrl-C."""
END_SECONDS = 120.0
_CACHE = re.compile(rb"--cache-dir=(/tmp/rk-demo-[^/]+)/cache")


@dataclass(frozen=True)
class RunningDemo:
    """One `raykeeper demo`."""

    process: subprocess.Popen[bytes]
    store: Path
    output_file: Path

    @property
    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    def wait_for(self, text: str, seconds: float) -> None:
        """Until it has said that; fails at once where it ended without."""

        def has_said() -> bool:
            assert self.process.poll() is None or text in self.output, self.output
            return text in self.output

        wait_until(f"a demo that says {text!r}", has_said, timeout=seconds)

    def run_folder(self) -> Path | None:
        """The folder that is to be gone afterwards, by the command line of its history server."""
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes()
            except OSError:
                continue  # it ended meanwhile
            if self.store.as_uri().encode() in line and (found := _CACHE.search(line)):
                return Path(found[1].decode())
        return None

    def wait_for_run_folder(self, seconds: float) -> Path:
        folder = wait_until("a run folder", self.run_folder, timeout=seconds)
        assert folder is not None
        return folder

    def end(self, number: signal.Signals) -> int:
        """Send a signal to it alone, as a terminal or a person does; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(END_SECONDS)


@contextmanager
def running_demo(folder: Path, command: Sequence[str] = ()) -> Iterator[RunningDemo]:
    """A demo on the bed's Ray, with its store in `folder`; killed at the end where it still runs."""
    store, output_file = folder / "store", folder / "output"
    arguments = ["demo", f"--folder={store}", f"--ray-python={ray_python()}", *(["--", *command] if command else [])]
    with output_file.open("wb") as output:
        process = subprocess.Popen(
            [*IN_THE_BACKGROUND, RAYKEEPER, *arguments], stdout=output, stderr=output, cwd=folder, env=os.environ
        )
    try:
        yield RunningDemo(process, store, output_file)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(END_SECONDS)
