"""A cgroup for some processes, which they see as the root of all: what a container has, without one. Needs root."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.node.cgroup import hierarchies

_CONTROLLERS = {"cpuacct", "memory", "cpu,cpuacct"}
_JOIN = """
set -e
while [ "$1" != -- ]; do
    echo $$ > "$1/cgroup.procs"
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""


@dataclass(frozen=True)
class OwnCgroup:
    """One group in each hierarchy that counts processor time and memory."""

    groups: dict[Path, Path]
    """By the place where the hierarchy is mounted."""

    @property
    def enter(self) -> list[str]:
        """What a command line begins with, to be run in the group and to see nothing above it."""
        places = [str(path) for root, group in self.groups.items() for path in (group, root)]
        unshare = shutil.which("unshare") or "unshare"
        return [unshare, "--mount", "--propagation=private", "sh", "-c", _JOIN, "sh", *places, "--"]


@contextmanager
def own_cgroup() -> Iterator[OwnCgroup]:
    """A group that is removed after the block; everything in it must have ended by then."""
    groups = {root: root / f"raykeeper-test-{os.getpid()}" for root in _counting_hierarchies()}
    assert groups, "no cgroup hierarchy counts memory"
    for group in groups.values():
        group.mkdir()
    try:
        yield OwnCgroup(groups)
    finally:
        for group in groups.values():
            _remove(group)


def _counting_hierarchies() -> list[Path]:
    """cgroup v1 has one for each controller; v2 is one, whose root must hand the controllers down."""
    for root in hierarchies():
        handed_down = root / "cgroup.subtree_control"
        if handed_down.exists() and "memory" in (root / "cgroup.controllers").read_text().split():
            handed_down.write_text("+memory +cpu")
            return [root]
    return [root for root in hierarchies() if root.name in _CONTROLLERS]


def _remove(group: Path) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # its last process takes a moment to leave
        else:
            return
