"""Why it failed: the report over a million tasks, of which 35,000 failed in 40 ways."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from support.large_tables import FAILURES, KINDS, TASKS, large_session

NAME = f"report over {TASKS:,} tasks, {FAILURES:,} failures of {KINDS} kinds"


def run() -> Iterator[Figure]:
    """In a process of its own, whose memory is that of a report alone."""
    with tempfile.TemporaryDirectory() as folder:
        large_session(Path(folder))
        command = [sys.executable, "-m", "bench.programs.report_session", folder]
        measured = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    cpu = f"{measured['cpu_seconds']:.1f} s of processor time with the start of the process"
    yield Figure(f"{NAME}: cold", measured["cold_seconds"], "s", 1.0, "less", cpu)
    yield Figure(f"{NAME}: again", measured["warm_seconds"] * 1000, "ms", 50, "less")
    yield Figure(f"{NAME}: again, after the session has changed", measured["anew_seconds"] * 1000, "ms")
    yield Figure(f"{NAME}: memory of the process", measured["peak_mb"], "MB RSS", 600, "less")
