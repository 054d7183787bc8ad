"""What a real node can leave on a machine, as lists of names that can be taken before and after and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from bed.node import cgroup
from bed.node.commands import CommandFailed, run
from bed.node.enclosure import PRIVATE_FOLDERS
from bed.node.settings import CONTAINERD_SOCKET, MACHINE_FOLDER
from bed.node.sysctls import sysctl_values
from bed.processes import ProcessId, processes_of

Names = frozenset[str]
IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True)
class Inventory:
    """The state of a machine in those parts that a node touches."""

    processes: Names
    """Of one bed only: others may come and go on the same machine."""
    mounts: Names
    links: Names
    addresses: Names
    routes: Names
    nft_tables: Names
    namespaces: Names
    cgroups: Names
    sysctls: Names
    folders: Names


def take_inventory(folder: Path) -> Inventory:
    """What there is now; `folder` is the bed whose processes are listed along with the node's."""
    return Inventory(
        processes=_processes(folder),
        mounts=_mounts(),
        links=frozenset(entry.name for entry in Path("/sys/class/net").iterdir()),
        addresses=_addresses(),
        routes=_routes(),
        nft_tables=_nft_tables(),
        namespaces=_namespaces(),
        cgroups=_cgroups(),
        sysctls=_sysctls(),
        folders=frozenset(str(path) for path in (*PRIVATE_FOLDERS, MACHINE_FOLDER) if path.exists()),
    )


def difference(before: Inventory, after: Inventory) -> list[str]:
    """One line for each thing that came or went, such as `links: + rkbed0`; empty when all is as it was."""
    lines = []
    for field in fields(Inventory):
        had, has = getattr(before, field.name), getattr(after, field.name)
        lines += [f"{field.name}: + {name}" for name in sorted(has - had)]
        lines += [f"{field.name}: - {name}" for name in sorted(had - has)]
    return lines


def _processes(folder: Path) -> Names:
    found = {*cgroup.node_processes(), *processes_of(folder), *processes_of(folder / "node"), *_shims()}
    return frozenset(f"{process.pid} {_command(process.pid)}" for process in found)


def _shims() -> Iterator[ProcessId]:
    """What containerd leaves between itself and a container, should it ever escape the node's cgroup."""
    for entry in Path("/proc").iterdir():
        process = ProcessId.of(int(entry.name)) if entry.name.isdigit() else None
        if process is not None and str(CONTAINERD_SOCKET) in _command(process.pid):
            yield process


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""  # it ended meanwhile


def _mounts() -> Names:
    """Mount points with their type and id: the same place may be mounted twice."""
    rows = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return frozenset(f"{row[4]} (mount {row[0]}, {row[row.index('-') + 1]})" for row in rows)


def _addresses() -> Names:
    links = json.loads(run(["ip", "-json", "address", "show"]))
    return frozenset(
        f"{entry['local']}/{entry['prefixlen']} on {link['ifname']}" for link in links for entry in link["addr_info"]
    )


def _nft_tables() -> Names:
    try:
        return frozenset(run(["nft", "list", "tables"]).splitlines())
    except CommandFailed:
        return frozenset()  # not installed before the first node


def _namespaces() -> Names:
    """Network and mount namespaces that processes live in, and those that are kept by name."""
    found = set()
    for namespace in [*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/ns/mnt")]:
        try:
            found.add(str(namespace.readlink()))
        except OSError:
            continue  # the process ended meanwhile
    named = Path("/run/netns")
    return frozenset(found | {path.name for path in named.iterdir()} if named.is_dir() else found)


def _routes() -> Names:
    """All tables; how long a route learnt from the network is still good for changes by itself."""
    lines = run(["ip", "route", "show", "table", "all"]).splitlines()
    return frozenset(re.sub(r" expires \S+", "", line).strip() for line in lines)


def _cgroups() -> Names:
    """Top-level groups of each hierarchy, where a kubelet's would appear, and everything in the node's own branch."""
    top = [group for root in cgroup.hierarchies() for group in root.iterdir() if group.is_dir()]
    own = [group for branch in cgroup.branches() for group in cgroup.groups_of(branch)]
    return frozenset(str(group) for group in [*top, *own])


def _sysctls() -> Names:
    values = sysctl_values() | {"net.ipv4.ip_forward": IP_FORWARD.read_text().strip()}
    return frozenset(f"{name}={value}" for name, value in values.items())
