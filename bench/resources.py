"""What a process costs: memory and processor time, as the kernel counts them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int | str = "self") -> float:
    """Resident memory now, in MB (10^6 bytes)."""
    return _status_kb(pid, "VmRSS") * 1024 / 1e6


def peak_mb(pid: int | str = "self") -> float:
    """The most resident memory so far, in MB."""
    return _status_kb(pid, "VmHWM") * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, to a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _status_kb(pid: int | str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
