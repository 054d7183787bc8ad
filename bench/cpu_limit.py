"""A processor limit as a container has it: a cgroup with a quota, v1 or v2. Needs root."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from bed.errors import BedError
from bed.node.cgroup import hierarchies

PERIOD_MICROSECONDS = 100_000  # the kubelet's


@contextlib.contextmanager
def cpu_limit(millicores: int) -> Iterator[Path | None]:
    """The file that a process writes its pid into to be limited; None where no limit can be set."""
    try:
        group = _limited_group(millicores)
    except (OSError, BedError):
        yield None
        return
    try:
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def _limited_group(millicores: int) -> Path:
    quota = millicores * PERIOD_MICROSECONDS // 1000
    root = next((path for path in hierarchies() if _has_quota(path)), None)
    if root is None:
        raise BedError("no cgroup hierarchy limits processors")
    group = root / f"raykeeper-bench-{os.getpid()}"
    group.mkdir()
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    return group


def _has_quota(root: Path) -> bool:
    controllers = root / "cgroup.controllers"
    if controllers.exists():
        return "cpu" in (root / "cgroup.subtree_control").read_text().split()
    return (root / "cpu.cfs_quota_us").exists()
