"""How long a person waits for `raykeeper --help`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure

RUNS = 15


def run() -> Iterator[Figure]:
    """The best of several runs, beside importing typer alone."""
    typer = _best([sys.executable, "-c", "import typer"])
    ours = _best([str(Path(sys.executable).parent / "raykeeper"), "--help"])
    yield Figure(
        "`raykeeper --help`, as a multiple of importing typer", ours / typer, "x", 2.0, "less", f"{typer:.2f} s"
    )


def _best(command: list[str]) -> float:
    times = []
    for _ in range(RUNS):
        started = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.monotonic() - started)
    return min(times)
