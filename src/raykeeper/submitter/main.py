"""The submitter as a process: its settings, its output, signals and exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from raykeeper.clock import SystemClock
from raykeeper.submitter.follow import Submitter
from raykeeper.submitter.settings import SubmitterSettings, read_settings

TERMINATION_LOG: Final = Path("/dev/termination-log")
"""What a container writes there, the kubelet puts into the status of its pod, where the operator reads it."""
STOPPED: Final = 143
"""Exit code, as a shell says of SIGTERM."""


def run(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Submit and follow; 0 once the job has ended, however it did: Kubernetes would start another submitter else.

    Raises `Misconfigured`, and what makes it impossible to go on.
    """
    settings = read_settings(arguments, environment)
    try:
        ended = asyncio.run(_until_stopped(settings))
    except asyncio.CancelledError:
        return STOPPED
    _write(f"Job '{settings.job.submission_id}' ended: {ended}\n")
    if TERMINATION_LOG.exists():
        TERMINATION_LOG.write_text(ended)
    return 0


async def _until_stopped(settings: SubmitterSettings) -> str:
    """As the first process of a container it would not hear SIGTERM unless it listens."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await Submitter(settings, _write, SystemClock()).run()


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.buffer.flush()
