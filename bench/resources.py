"""What a process costs: memory and processor time, as the kernel counts them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int | str = "self") -> float:
    """Resident memory now, in MB (10^6 bytes)."""
    return _status_kb(pid, "VmRSS") * 1024 / 1e6


def peak_mb(pid: int | str = "self") -> float:
    """The most resident memory so far, in MB."""
    return _status_kb(pid, "VmHWM") * 1024 / 1e6


def tree_mb(pid: int | None = None) -> float:
    """Resident memory now of a process (None: this one) and all its children, in MB."""
    this = psutil.Process(pid)
    return sum(map(_tree_rss, [this, *this.children(recursive=True)])) / 1e6


def _tree_rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, to a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def cpu_by_daemon(folder: Path) -> dict[str, float]:
    """Processor time so far of every daemon whose pid file is in `FOLDER/run`, by name."""
    pids = {file.stem: int(file.read_text().split()[0]) for file in (folder / "run").glob("*.pid")}
    return {name: cpu_seconds(pid) for name, pid in pids.items() if Path(f"/proc/{pid}").exists()}


def cpu_spent(before: dict[str, float], after: dict[str, float]) -> str:
    """Who used how much processor time between two readings, the greediest first: `kube-apiserver 21 s, etcd 4 s`."""
    spent = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    order = sorted(spent.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in order if seconds >= 0.1)


def _status_kb(pid: int | str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
