"""What every process of the node runs in: a cgroup by which it is found and a mount namespace that dies with it.

All mounts of containerd, the kubelet and their pods (root file systems, volumes, network namespaces) are made in
that namespace. Once its last process has ended, the kernel has undone them all; nothing has to be unmounted.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from bed.errors import BedError
from bed.node import cgroup
from bed.node.commands import search_path
from bed.processes import Process
from bed.waiting import wait_until

PRIVATE_FOLDERS = (
    Path("/run/containerd"),  # the shims' sockets, whatever containerd's configuration says
    Path("/var/lib/cni"),
    Path("/var/lib/kubelet"),  # also the device plugins' sockets, whatever the kubelet's configuration says
    Path("/var/log/containers"),
    Path("/var/log/pods"),
)
"""Folders of the machine that the daemons write to by fixed paths. Inside they are the node's own, so a containerd or
kubelet that the machine itself runs is never touched."""

START_SECONDS = 120.0
_SHELL = "/bin/sh"


class Enclosure:
    """The surroundings of one node; `folder` holds what is behind the private folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._holder_pid_file = folder / "enclosure.pid"
        script = holder_script(self._private_folders(), self._holder_pid_file)
        self.holder = Process("enclosure", [_SHELL, "-c", script], folder)

    def up(self) -> bool:
        """Make cgroups and namespace, and return once daemons can be started in them; False when they were there."""
        if self.holder.alive and self._holder_pid_file.exists():
            return False
        cgroup.make_branches()
        cgroup.kill_node_processes()  # whoever is left in a namespace that nobody can enter any more
        for path, private in self._private_folders().items():
            private.mkdir(parents=True, exist_ok=True)
            path.mkdir(parents=True, exist_ok=True)
        self._holder_pid_file.unlink(missing_ok=True)
        self.holder.start()
        wait_until(
            "enclosure of the node", lambda: self._holder_pid_file.exists() or not self.holder.alive, START_SECONDS
        )
        if not self.holder.alive:
            raise BedError(f"the node's mount namespace could not be made:\n{self.holder.last_lines()}")
        return True

    def daemon(self, name: str, argv: Sequence[str | Path]) -> Process:
        """A process that runs inside once started; its pid is the daemon's own."""
        enter = entering_script(cgroup.daemons_group(), self._holder_pid_file)
        return Process(name, [_SHELL, "-c", enter, "sh", *argv], self.folder, {"PATH": search_path()})

    def down(self) -> None:
        """End everything inside and leave no trace of it; works from any half-made state."""
        cgroup.kill_node_processes()
        cgroup.remove_branches()
        self._holder_pid_file.unlink(missing_ok=True)
        for path in PRIVATE_FOLDERS:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()  # only a mount point; the machine's own would have something in it

    def _private_folders(self) -> dict[Path, Path]:
        return {path: self.folder / "private" / path.relative_to("/") for path in PRIVATE_FOLDERS}


def holder_script(private_folders: Mapping[Path, Path], pid_file: Path) -> str:
    """Shell text that joins the cgroup, makes the namespace with its bind mounts, and then only keeps it alive.

    The namespace is complete once `pid_file` is there.
    """
    binds = [f"mount --bind {shlex.quote(str(own))} {path}" for path, own in private_folders.items()]
    whole, unfinished = shlex.quote(str(pid_file)), shlex.quote(f"{pid_file}.unfinished")
    tell = f"echo $$ > {unfinished} && mv {unfinished} {whole}"
    inside = " && ".join([*binds, tell, "exec sleep infinity"])
    join = f"echo $$ > {cgroup.daemons_group()}/cgroup.procs"
    return f"{join} && exec unshare --mount --propagation private sh -c {shlex.quote(inside)}"


def entering_script(group: Path, holder_pid_file: Path) -> str:
    """Shell text that becomes its arguments, inside the cgroup and the holder's mount namespace."""
    join = f"echo $$ > {group}/cgroup.procs && read holder < {shlex.quote(str(holder_pid_file))}"
    return f'{join} && exec nsenter --mount="/proc/$holder/ns/mnt" -- "$@"'
