"""Which addresses and names mean this machine alone. Pure."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str | None) -> bool:
    """Whether only this machine can reach the address."""
    if host is None:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
