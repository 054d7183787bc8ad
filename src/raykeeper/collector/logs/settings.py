"""What the log shipper is told at its start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raykeeper.collector.settings import LogFileSettings
from raykeeper.settings.values import MIB


@dataclass(frozen=True)
class LogShipperSettings:
    """Whose logs these are, and how often and how much is done. What a user can set has the user's default."""

    spool: Path | None
    """Folder of the collector's own; `logs/positions` below it says what the bucket has. None remembers nothing."""
    namespace: str
    """Of the cluster: part of every key."""
    cluster: str
    """Its name, likewise."""
    pod: str
    """Names the node while no node id is known."""
    user_tick_seconds: float = LogFileSettings.user_seconds
    """Between two looks at what tasks, actors, drivers and Serve write."""
    component_tick_seconds: float = LogFileSettings.component_seconds
    """Between two packs of Ray's own logs."""
    quiet_component_tick_seconds: float = 90.0
    """The same while they say little: 40 objects an hour."""
    quiet_component_bytes: int = 64 << 10
    """Less than this is little."""
    deleted_bytes_max: int = LogFileSettings.max_held_bytes
    """Size of deleted files that are kept open until they are read; above it the oldest is given up."""
    descriptors_max: int = 256
    """Files open at the same time: those with unsent bytes and those written lately."""
    node_wait_seconds: float = 30.0
    """How long a file waits for the id of its node before it is filed under `unknown-<pod>`."""
    pack_bytes: int = 8 * MIB
    """A pack is closed when its frames reach this."""
    flush_pack_bytes: int = 2 * MIB
    """The same at the end, when little must hang on one put."""

    @property
    def positions_file(self) -> Path | None:
        return self.spool / "logs" / "positions" if self.spool else None

    @property
    def unknown_node(self) -> str:
        return f"unknown-{self.pod}"
