"""How long a person waits for `raykeeper demo` where Ray is installed already."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bed.rayenv import ray_python
from bench.figures import Figure

NAME = "`raykeeper demo --exit`, Ray installed"


def run() -> Iterator[Figure]:
    """The better of two runs, the first of which warms the disk; beside starting Ray's Python with Ray alone."""
    python = ray_python()
    alone = _seconds([str(python), "-c", "import ray"])
    yield Figure(NAME, min(_demo(python), _demo(python)), "s", 60, "less", f"`import ray`: {alone:.1f} s")


def _demo(python: Path) -> float:
    raykeeper = Path(sys.executable).with_name("raykeeper")
    with tempfile.TemporaryDirectory() as folder:
        return _seconds([str(raykeeper), "demo", "--exit", f"--folder={folder}", f"--ray-python={python}"])


def _seconds(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began
