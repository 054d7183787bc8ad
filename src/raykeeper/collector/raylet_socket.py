"""Whether a raylet still listens: asked in a way that the raylet does not notice.

A real connection would make it write a line about an unregistered client each time.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

_BOUND_SOCKETS = Path("/proc/net/unix")


def raylet_listens(session: Path) -> bool | None:
    """True if a raylet of the session has its socket open, False if none has, None if that cannot be told.

    A raylet that starts beside the socket of a dead one names its own `raylet.1`, and so on.
    """
    try:
        folder = os.open(session / "sockets", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name == "raylet" or e.name.startswith("raylet.")]
        # Through the descriptor the path is short: the kernel takes 107 bytes, and Ray's folder may be deep.
        answers = [_is_open(f"/proc/self/fd/{folder}/{name}", f"{session.name}/sockets/{name}") for name in names]
    except OSError:
        return None
    finally:
        os.close(folder)
    if True in answers:
        return True
    return None if None in answers else False


def _is_open(path: str, tail: str) -> bool | None:
    """Whether a process has the socket open, by the error for a connection of the wrong type."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return False
        except PermissionError:
            return _is_bound(tail)  # the raylet runs as another user
        except OSError as exc:
            return True if exc.errno == errno.EPROTOTYPE else None
        return True


def _is_bound(tail: str) -> bool | None:
    """Whether the kernel's list of this pod's sockets has one whose path ends so; Ray may see another path than we."""
    try:
        lines = _BOUND_SOCKETS.read_text(errors="replace").splitlines()
    except OSError:
        return None
    return any(line.endswith(f"/{tail}") for line in lines)
