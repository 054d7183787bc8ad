"""Whether a raylet still listens: asked in a way that the raylet does not notice.

A real connection would make it write a line about an unregistered client each time.
"""

from __future__ import annotations

import errno
import socket
import stat
from pathlib import Path

from raykeeper.collector.rayfolder import Folder, ray_session

MAX_SOCKETS = 16
"""Asked of one session; a raylet that was killed leaves its own behind."""
_BOUND_SOCKETS = Path("/proc/net/unix")


def raylet_listens(session: Path) -> bool | None:
    """True if a raylet of the session has its socket open, False if none has, None if that cannot be told.

    A raylet that starts beside the socket of a dead one names its own `raylet.1`, and so on.
    """
    answers = raylet_sockets(session)
    if answers is None:
        return None
    if True in answers:
        return True
    return None if None in answers else False


def raylet_sockets(session: Path) -> list[bool | None] | None:
    """For each raylet socket of the session whether a process has it open; None if they cannot be seen at all."""
    try:
        with ray_session(session, "sockets") as folder:
            # Through the descriptor the path is short: the kernel takes 107 bytes, and Ray's folder may be deep.
            path = f"/proc/self/fd/{folder.descriptor}"
            return [_is_open(f"{path}/{name}", f"{session.name}/sockets/{name}") for name in _sockets(folder)]
    except OSError:
        return None


def _sockets(folder: Folder) -> list[str]:
    """The newest of the names that a raylet gives its socket; a link of such a name is none."""
    names = [e.name for e in folder.list().entries if e.name == "raylet" or e.name.startswith("raylet.")]
    sockets = [name for name in names if not stat.S_ISLNK(folder.status(name).st_mode)]
    return sorted(sockets, key=folder.changed_ns)[-MAX_SOCKETS:]


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
