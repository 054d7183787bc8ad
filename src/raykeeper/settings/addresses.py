"""Where a program listens, written as Go programs write it, so that KubeRay's flags keep their values."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from raykeeper.errors import Misconfigured

_DISABLED = ("", "0")
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\[\]\s]*)):(?P<port>[0-9]{1,5})")
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Address:
    """A TCP address to listen on; no host means every interface, port 0 a free one."""

    host: str | None
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.host and ":" in self.host else f"{self.host or ''}:{self.port}"


def is_loopback(host: str | None) -> bool:
    """Whether only this machine can reach the address."""
    if host is None:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_address(setting: str, text: str) -> Address | None:
    """The address in `host:port`, `:port` or `[ipv6]:port`; None where an empty text or `0` switches it off."""
    if text in _DISABLED:
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise Misconfigured(setting, text, "use host:port, :port for all interfaces, [ipv6]:port, or 0 for none")
    return Address(match["ipv6"] or match["host"] or None, int(match["port"]))
