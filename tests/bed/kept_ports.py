"""The ports of a server, kept in its folder: every process that uses the folder finds the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from bed.ports import free_port


def kept_ports(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """A port for each name, picked by whoever asks first. Assumes the folder's lock is held."""
    file = folder / "ports.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode({name: free_port() for name in names}))
    return msgspec.json.decode(file.read_bytes(), type=dict[str, int])
