"""Processes that a run started and that outlived their parent: found by what they carry, ended for good.

Ray's workers rename themselves, which wipes the environment that Linux shows of them; their output still goes to files
of the run. Where there is no /proc nothing is found, and Ray's own reaper has to do.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "RAY_TMP_ROOT"
"""Variable that every process of a run inherits: a folder of that run alone."""

_PROC = Path("/proc")
_OUTPUTS = ("fd/1", "fd/2")
PATIENCE_SECONDS = 5.0  # a killed process is gone at once, unless the disk is slow to write what it held


def kill_leftovers(folder: Path) -> None:
    """Kill every process that belongs to the run in this folder, and wait until it is gone."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while found := list(find_leftovers(folder)):
        for pid in found:
            _kill(pid, folder)
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def find_leftovers(folder: Path) -> Iterator[int]:
    """Their pids, without our own."""
    for entry in _PROC.glob("[0-9]*"):
        if int(entry.name) != os.getpid() and _belongs(entry, folder):
            yield int(entry.name)


def _kill(pid: int, folder: Path) -> None:
    """Kill it if the pid still means what it meant: a pidfd is of one process for ever."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _belongs(_PROC / str(pid), folder):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended in between
    finally:
        os.close(handle)


def _belongs(process: Path, folder: Path) -> bool:
    try:
        if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
            return True
        return any((process / output).readlink().is_relative_to(folder) for output in _OUTPUTS)
    except OSError:  # gone, a zombie, or another user's
        return False
