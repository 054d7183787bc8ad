"""The program that holds a pod's namespaces open: small, static, our own."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bed.cache import cache_folder
from bed.golang import go
from bed.node.commands import run

SOURCE = Path(__file__).parent / "pause"
BUILD_TIMEOUT_SECONDS = 300


def pause_program() -> Path:
    """The program in the cache, built first when its source has changed."""
    key = hashlib.sha256((SOURCE / "main.go").read_bytes()).hexdigest()[:12]
    program = cache_folder() / "images" / f"pause-{key}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".unfinished")
        run(
            [str(go()), "build", "-C", str(SOURCE), "-trimpath", "-ldflags", "-s -w", "-o", str(unfinished), "."],
            env={"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"},
            timeout_seconds=BUILD_TIMEOUT_SECONDS,
        )
        unfinished.rename(program)
    return program
