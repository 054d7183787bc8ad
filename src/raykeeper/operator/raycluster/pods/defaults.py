"""What is decided about all Ray pods alike, by the operator's settings and by the Kubernetes it runs on."""

from __future__ import annotations

from dataclasses import dataclass, field

from raykeeper.operator.settings import PodSettings
from raykeeper.operator.shared.history import History


@dataclass(frozen=True)
class PodDefaults:
    """Everything about a pod that does not come from its RayCluster."""

    operator_version: str
    """Our version, as head pods carry it; by it another operator sees that the hash beside it is not its own."""
    settings: PodSettings = field(default_factory=PodSettings)
    """What the operator's own configuration says."""
    has_native_sidecars: bool = True
    """Whether init containers may go on running (Kubernetes 1.29), so that a sidecar outlives Ray."""
    history: History = field(default_factory=History)
    """What clusters get that ask for history by an annotation."""
