"""Free ports of the loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from raykeeper.demo.asking import LOOPBACK


def free_ports(number: int) -> list[int]:
    """Different ports that nobody listens at. Held together while they are chosen, so that none comes twice."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for item in sockets:
            item.bind((LOOPBACK, 0))
        return [int(item.getsockname()[1]) for item in sockets]
