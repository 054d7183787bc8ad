"""What a controller is made from: everything it may use, and nothing it would have to make itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.operator.api_server_facts import ApiServerFacts
from raykeeper.operator.rayhead.client import Heads
from raykeeper.operator.rayhead.poller import HeadPoller
from raykeeper.operator.schedulers.interface import Scheduler
from raykeeper.operator.settings import OperatorSettings
from raykeeper.operator.watches import Informers


@dataclass(frozen=True)
class Context:
    """Shared by all controllers of one term of leading. The next term makes its controllers anew."""

    kube: Kube
    """Its writes are withheld unless this process leads."""
    informers: Informers
    """Caches of what is watched. A controller may hang handlers of its own on them while it is made."""
    recorder: Callable[[str], EventRecorder]
    """Makes a recorder of Kubernetes Events in the name of a controller, such as `raycluster-controller`."""
    settings: OperatorSettings
    api_server: ApiServerFacts
    metrics: KubeMetrics
    """Counts go on from term to term, so a controller registers none of its own while it is made."""
    clock: Clock
    scheduler: Scheduler
    """Starts the pods of a cluster together, or does not."""
    heads: Heads
    """Makes clients of Ray heads: for orders, which are awaited, and for questions."""
    polls: HeadPoller
    """Asks heads in the background; a change of an answer wakes the controller of the kind that asked."""
