"""The settings of the event path, and the limits that nobody sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raykeeper.collector.settings import MAX_SEAL_BYTES, SinkSettings, SpoolSettings
from raykeeper.settings.values import MIB

LARGE_BODY_BYTES = 2 * MIB
"""A body above this grows in a file of its own instead of in memory. Ray 2.60 sends up to about 1 MB."""

MAX_BODY_BYTES = 72 * MIB
"""Of a longer body only the beginning is kept, and set aside; Ray's longest is a tenth of this. It is in memory
while it is sealed, with a copy of its events."""

MAX_JOURNAL_BYTES = MAX_SEAL_BYTES + MAX_BODY_BYTES + MIB
"""Ours have a body more than a segment at most, and the headers of its records; a longer one is not ours. One is read
whole, within the 256 MB that the sidecar has."""

KEPT_OF_CUT_BODY_BYTES = MIB

SOFT_SHARE = 0.5
"""Of the disk budget: above it everything is sealed at once, whatever its age."""

BACKLOG_SHARE = 0.5
"""Of the disk budget, in journals that could be sealed: above it answers wait a little, so that Ray sends no faster
than we seal. Below it a burst is taken as fast as the disk takes it."""

PACE_SECONDS = 1.0
"""The longest such wait; Ray gives up after 3."""


@dataclass(frozen=True)
class EventSettings:
    """What the event path needs to know. What a user can set has the user's default."""

    namespace: str
    """Of the cluster: part of every key."""
    cluster: str
    """Its name, likewise."""
    pod: str
    """Names the node that is not known: `unknown-<pod>`."""
    folder: Path
    """Of the spool. Must be on a disk that survives the container, such as the pod's emptyDir."""
    port: int = SinkSettings.port
    """To listen at; 0 means a free one."""
    hosts: tuple[str, ...] = SinkSettings.hosts
    """Ray resolves `localhost`, which may be either. The first must be there, the others may be missing."""
    spool_max_bytes: int = SpoolSettings.max_bytes
    """Above this, new events are refused with 503; protects the Ray pod's disk."""
    segment_max_bytes: int = SpoolSettings.seal_bytes
    """Text of one segment; sealed when it is reached."""
    busy_seal_seconds: float = SpoolSettings.seal_seconds
    """Age at which a fair amount is sealed: how much a lost disk may cost under load."""
    idle_seal_seconds: float = SpoolSettings.idle_seal_seconds
    """Age at which a trickle is sealed: 40 objects an hour from a head that does nothing."""
    node_wait_seconds: float = 60.0
    """How long events without a node id wait for the raylet to have one (Ray 2.52), then filed as unknown."""
    parallel_uploads: int = 3
    """Segments on their way to the bucket at a time; each is held in memory."""

    @property
    def unknown_node(self) -> str:
        return f"unknown-{self.pod}"
