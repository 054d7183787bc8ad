"""What the collector can see of its pod by itself: the disk below Ray's folder, and the network.

Ray's agent does not tell its disk inside Kubernetes. The network is that of the whole pod, which its containers share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.collector.rayfolder import ray_root

_INTERFACES = Path("/proc/net/dev")
_INTERFACES_BYTES = 1 << 20
_COUNTED = ("e", "ib", "net", "w")
"""How the names of interfaces begin that lead elsewhere: Ethernet (as Ray counts it), InfiniBand, further ones of a pod
(`net1`), and a laptop's wireless. Others are loopback, or carry what one of these carries too."""
_LINE = re.compile(r"\s*([^\s:]{1,64}):((?:\s+\d{1,20}){16})\s*")
_RECEIVED, _SENT = 0, 8  # columns of /proc/net/dev


@dataclass(frozen=True)
class Traffic:
    """Bytes since the machine began."""

    received: int
    sent: int


@dataclass(frozen=True)
class MachineFigures:
    """Of one moment; None for what cannot be seen."""

    disk_bytes: int | None = None
    disk_total_bytes: int | None = None
    received_per_second: float | None = None
    sent_per_second: float | None = None


class Machine:
    """Looks at the pod. Speeds are those since the look before."""

    def __init__(self, ray_root: Path, clock: Clock, interfaces: Path = _INTERFACES) -> None:
        self._ray_root = ray_root
        self._clock = clock
        self._interfaces = interfaces
        self._last: tuple[float, Traffic] | None = None

    def look(self) -> MachineFigures:
        """Blocks for as long as the disk does: for a thread."""
        disk, total = self._disk()
        received, sent = self._speeds()
        return MachineFigures(disk, total, received, sent)

    def _disk(self) -> tuple[int | None, int | None]:
        try:
            with ray_root(self._ray_root) as folder:
                return folder.disk()
        except OSError:
            return None, None

    def _speeds(self) -> tuple[float | None, float | None]:
        now, before = self._clock.steady(), self._last
        try:
            with self._interfaces.open(errors="replace") as file:
                traffic = parse_traffic(file.read(_INTERFACES_BYTES).splitlines())
        except OSError:
            return None, None
        self._last = (now, traffic)
        if before is None or now <= before[0]:
            return None, None
        seconds = now - before[0]
        received, sent = traffic.received - before[1].received, traffic.sent - before[1].sent
        if received < 0 or sent < 0:  # an interface went
            return None, None
        return received / seconds, sent / seconds


def parse_traffic(lines: Sequence[str]) -> Traffic:
    """The sum over the interfaces that count, of the lines of /proc/net/dev. Pure."""
    received = sent = 0
    for line in lines:
        found = _LINE.fullmatch(line)
        if found and found[1].startswith(_COUNTED):
            columns = found[2].split()
            received += int(columns[_RECEIVED])
            sent += int(columns[_SENT])
    return Traffic(received, sent)
