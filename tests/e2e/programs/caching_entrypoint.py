"""A container's own entry point: runs `ray start` beside a cache, which grows without a limit once work has begun."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

PIECE_BYTES = 64 * 1024 * 1024  # as fast as it can: near its limit a container reads its programs anew all the time
BEGUN = Path("/tmp/work-has-begun")


def main() -> None:
    ray = subprocess.Popen(["bash", "-c", os.environ["KUBERAY_GEN_RAY_START_CMD"]])
    while ray.poll() is None and not BEGUN.exists():
        time.sleep(0.2)
    kept = []
    while ray.poll() is None:
        kept.append(b"x" * PIECE_BYTES)


if __name__ == "__main__":
    main()
