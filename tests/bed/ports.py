"""Free ports that stay free: handed out once, below the kernel's ephemeral range.

A port of the ephemeral range could be taken by any outgoing connection while its server is down, and a killed
API server must come back on the port its clients know.
"""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path

from bed.cache import cache_folder
from bed.errors import BedError

PORTS = range(20_000, 32_000)  # Linux' ephemeral range starts at 32768
CLAIM_SECONDS = 600.0  # a claim covers the time between picking a port and its server listening, generously
ATTEMPTS = 200


def free_port(address: str = "127.0.0.1") -> int:
    """A port nobody listens on at `address` and nobody else was given in the last minutes."""
    claims = cache_folder() / "ports"
    claims.mkdir(parents=True, exist_ok=True)
    for port in random.SystemRandom().sample(PORTS, ATTEMPTS):
        if _is_unused(address, port) and _claim(claims / str(port)):
            return port
    raise BedError(f"no free port found at {address} between {PORTS.start} and {PORTS.stop}")


def _is_unused(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _claim(claim: Path) -> bool:
    """Whether this call made the claim; an old one is given up first."""
    try:
        if time.time() - claim.stat().st_mtime > CLAIM_SECONDS:
            claim.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True
