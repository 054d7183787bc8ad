"""Folders as Ray leaves them: sessions, port files, raylet logs, log files, each with a time of our choice."""

from __future__ import annotations

import os
from pathlib import Path

SESSION = "session_2026-11-15_20-09-58_472817_9"
NODE_A = "a" * 56
NODE_B = "b" * 56
NODE_C = "c" * 56


def a_session(root: Path, name: str = SESSION) -> Path:
    """A session directory with an empty `logs/`, which `session_latest` points at as Ray's container sees it."""
    (root / name / "logs").mkdir(parents=True)
    latest = root / "session_latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(f"/tmp/ray/{name}")
    return root / name


def a_port_file(session: Path, node_id: str, server: str = "metrics_agent", at: float | None = None) -> None:
    """A port file of Ray 2.54 and later."""
    written(session / f"{server}_port_{node_id}", b"8080", at)


def raylet_text(node_id: str) -> bytes:
    """The first lines of a raylet's log."""
    return (
        b"[2026-11-15 20:10:29,636 I 23 23] (raylet) main.cc:283: Setting cluster ID to: 1bb3\n"
        b"[2026-11-15 20:10:29,650 I 23 23] (raylet) main.cc:711: Setting node ID node_id=" + node_id.encode() + b"\n"
    )


def written(file: Path, data: bytes, at: float | None = None) -> Path:
    """The file with these bytes, last written at that time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    if at is not None:
        at_ns = round(at * 1e6) * 1000  # a float has no digits for nanoseconds of our century
        os.utime(file, ns=(at_ns, at_ns))
    return file
