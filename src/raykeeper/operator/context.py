"""What a controller is made from: everything it may use, and nothing it would have to make itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.surroundings import Surroundings
from raykeeper.operator.watches import Informers


@dataclass(frozen=True)
class Context:
    """Shared by all controllers of a process."""

    kube: Kube
    """Its writes are withheld unless this process leads."""
    informers: Informers
    """Caches of what is watched. A controller may hang handlers of its own on them while it is made."""
    recorder: Callable[[str], EventRecorder]
    """Makes a recorder of Kubernetes Events in the name of a controller, such as `raycluster-controller`."""
    settings: OperatorSettings
    surroundings: Surroundings
    metrics: KubeMetrics
    """Metrics of its own go into its `registry`."""
    clock: Clock
