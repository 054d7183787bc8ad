"""Whether a real node can run on this machine, answered without changing anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from bed.node.commands import CommandFailed, find_program, run, succeeds
from bed.node.settings import BRIDGE, NODE_ADDRESS, POD_RANGE, SERVICE_LINK, SERVICE_RANGE

NEEDED_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""Name -> bit; root inside an ordinary container lacks them."""
NEEDED_MODULES = {"overlay": "/sys/module/overlay", "br_netfilter": "/proc/sys/net/bridge"}
"""Kernel module -> a path that is there once it is loaded or built in."""
OWN_RANGES = (IPv4Network(f"{NODE_ADDRESS}/32"), POD_RANGE, SERVICE_RANGE)


@dataclass(frozen=True)
class Machine:
    """What the answer depends on."""

    platform: str = "linux"
    user: int = 0
    capabilities: int = (1 << 64) - 1
    missing_modules: Sequence[str] = ()
    routes: Sequence[IPv4Network] = ()
    """Destinations that the machine reaches by links other than ours."""


def why_not() -> str | None:
    """One sentence why a real node cannot run here, or None when it can."""
    if not sys.platform.startswith("linux"):
        return reason_against(Machine(platform=sys.platform))
    return reason_against(
        Machine(
            user=os.geteuid(),
            capabilities=_effective_capabilities(),
            missing_modules=missing_modules(loadable=True),
            routes=_foreign_routes(),
        )
    )


def reason_against(machine: Machine) -> str | None:
    """The first thing that stands against a real node; pure."""
    if machine.platform != "linux":
        return f"a real node needs Linux, this is {machine.platform}"
    if machine.user != 0:
        return f"a real node needs root, this is user {machine.user}"
    if lacking := [name for name, bit in NEEDED_CAPABILITIES.items() if not machine.capabilities >> bit & 1]:
        return f"a real node needs {' and '.join(lacking)}, which root does not have here"
    if machine.missing_modules:
        return f"a real node needs what this kernel lacks: {', '.join(machine.missing_modules)}"
    for route in machine.routes:
        if any(route.overlaps(own) for own in OWN_RANGES):
            return f"the machine's route to {route} overlaps the real node's addresses"
    return None


def missing_modules(*, loadable: bool) -> list[str]:
    """Kernel modules neither loaded nor built in; when `loadable`, those that could be loaded count as there."""
    absent = [name for name, sign in NEEDED_MODULES.items() if not Path(sign).exists() and not _is_filesystem(name)]
    return [name for name in absent if not (loadable and _can_be_loaded(name))]


def _is_filesystem(name: str) -> bool:
    return f"\t{name}\n" in Path("/proc/filesystems").read_text()


def _can_be_loaded(module: str) -> bool:
    return find_program("modprobe") is not None and succeeds(["modprobe", "--dry-run", module])


def _effective_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def _foreign_routes() -> list[IPv4Network]:
    """Destinations in the main table but for the default route and what a node of ours laid."""
    try:
        lines = run(["ip", "-4", "route", "show"]).splitlines()
    except CommandFailed:
        return []  # without iproute2 yet; it is among the packages to install
    destinations = [line.split()[0] for line in lines if line.strip() and not _is_own(line)]
    return [network for text in destinations if (network := _parse_network(text)) is not None]


def _is_own(route: str) -> bool:
    return any(f"dev {link}" in route for link in (BRIDGE, SERVICE_LINK))


def _parse_network(text: str) -> IPv4Network | None:
    """The destination of a route; None for `default`, `unreachable` and other words."""
    try:
        return IPv4Network(text)
    except ValueError:
        return None
