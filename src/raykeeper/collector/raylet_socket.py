"""Whether a raylet still listens: asked at its socket, without sending anything."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_CONNECT_SECONDS = 0.2  # a local socket answers at once, unless its queue is full, and then somebody listens


def raylet_listens(session: Path) -> bool | None:
    """True if a raylet of the session takes connections, False if none does, None if that cannot be told.

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
        answers = [_listens(f"/proc/self/fd/{folder}/{name}") for name in names]
    except OSError:
        return None
    finally:
        os.close(folder)
    if True in answers:
        return True
    return None if None in answers else False


def _listens(path: str) -> bool | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_CONNECT_SECONDS)
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return False
        except (TimeoutError, BlockingIOError):
            return True
        except OSError:
            return None  # another uid's socket, or gone this moment
        return True
