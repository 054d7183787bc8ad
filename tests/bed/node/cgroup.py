"""The node's own branch of every cgroup hierarchy, v1 or v2: all its processes live below it.

That is how a node is found and ended whatever else has been lost: pid files, containerd, the kubelet, their state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bed.errors import BedError
from bed.node.settings import CGROUP
from bed.processes import ProcessId, kill_and_wait
from bed.waiting import wait_until

PROC = Path("/proc")
DAEMONS = "daemons"
KUBELET_CONTROLLERS = {"cpu", "cpuset", "hugetlb", "memory", "pids"}
REMOVE_SECONDS = 60.0  # a container's last process takes a moment to leave its group
WEIGHTS = {"cpu.shares": "8192", "cpu.weight": "800"}
"""v1 and v2: all pods together weigh as eight processes do. A whole branch weighs as one otherwise, and beside a busy
machine's other processes Ray would not even start in time."""


def hierarchies(mountinfo: str | None = None) -> list[Path]:
    """Mount points of all cgroup hierarchies: one per controller with v1, one in all with v2, both when mixed."""
    text = mountinfo if mountinfo is not None else (PROC / "self" / "mountinfo").read_text()
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[:1] in (["cgroup"], ["cgroup2"]):
            found.append(Path(before.split()[4]))
    return found


def branches() -> list[Path]:
    """The node's branch in each hierarchy, there or not."""
    return [hierarchy / CGROUP for hierarchy in hierarchies()]


def make_branches() -> None:
    """Make the branch everywhere, with the controllers that the kubelet expects of its root."""
    for branch in branches():
        branch.mkdir(exist_ok=True)
    if all(_is_v2(root) for root in hierarchies()):
        for branch in branches():
            _hand_down_controllers(branch.parent)
            _hand_down_controllers(branch)
    for branch in branches():
        _give_weight(branch)
    daemons_group().mkdir(exist_ok=True)


def daemons_group() -> Path:
    """Where daemons are started; what they start is born there too.

    Only one hierarchy is used, since one is enough to find a process: v2 where there is one, else v1's `pids`,
    which limits nothing unless told to.
    """
    by_preference = sorted(hierarchies(), key=lambda path: (not _is_v2(path), path.name != "pids"))
    if not by_preference:
        raise BedError("no cgroup hierarchy is mounted")
    return by_preference[0] / CGROUP / DAEMONS


def node_processes() -> list[ProcessId]:
    """Every live process in the node's branch of any hierarchy."""
    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            memberships = (entry / "cgroup").read_text()
        except OSError:
            continue  # it ended meanwhile
        process = ProcessId.of(int(entry.name)) if is_member(memberships) else None
        if process is not None:
            found.append(process)
    return found


def is_member(memberships: str) -> bool:
    """Whether /proc/PID/cgroup names a group in the node's branch."""
    paths = (line.split(":", 2)[2] for line in memberships.splitlines() if line.count(":") >= 2)
    return any(path == f"/{CGROUP}" or path.startswith(f"/{CGROUP}/") for path in paths)


def kill_node_processes(timeout: float = 60.0) -> None:
    """SIGKILL everything in the branch until nothing is left in it."""

    def all_gone() -> bool:
        for process in node_processes():  # again, since a dying process may just have started another
            kill_and_wait(process)
        return not node_processes()

    wait_until("end of the node's processes", all_gone, timeout)


def remove_branches() -> None:
    """Remove the branch everywhere; raises BedError when a group stays busy."""

    def all_removed() -> bool:
        busy = [branch for branch in branches() if not _is_removed(branch)]
        return not busy

    wait_until("removal of the node's cgroups", all_removed, REMOVE_SECONDS)


def groups_of(branch: Path) -> Iterator[Path]:
    """All groups of a branch, children before their parents."""
    if branch.is_dir():
        for child in _folders(branch):
            yield from groups_of(child)
        yield branch


def _is_removed(branch: Path) -> bool:
    for group in groups_of(branch):
        try:
            group.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return False  # busy for a moment: a process that was killed is still leaving
    return True


def _folders(group: Path) -> Sequence[Path]:
    try:
        return [entry for entry in group.iterdir() if entry.is_dir()]
    except FileNotFoundError:
        return []


def _is_v2(group: Path) -> bool:
    return (group / "cgroup.controllers").exists()


def _give_weight(branch: Path) -> None:
    """Where processors are shared out in this hierarchy; with v2 that is where the parent hands the controller down."""
    for name, weight in WEIGHTS.items():
        if (branch / name).exists():
            (branch / name).write_text(weight)


def _hand_down_controllers(group: Path) -> None:
    """With v2 alone a child has only the controllers its parent hands down; systemd has most handed down already."""
    controllers = KUBELET_CONTROLLERS & set((group / "cgroup.controllers").read_text().split())
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(controllers)))
