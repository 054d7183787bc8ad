"""Grows by some memory and burns a CPU; writes down when it began to. Arguments: MB, seconds, the file to write."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


@ray.remote(num_cpus=1)  # type: ignore[untyped-decorator, unused-ignore]
def burn(megabytes: int, seconds: float, since: str) -> int:
    grown = bytearray(megabytes << 20)
    grown[:: 1 << 12] = b"x" * len(grown[:: 1 << 12])
    began = time.time()
    Path(since).write_text(str(began))
    while time.time() - began < seconds:
        pass
    return len(grown)


ray.init()
ray.get(burn.remote(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
