"""What every part of the operator's process uses, made once by `main.py`."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.leader.installations import Ours
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.serving.server import Serving
from raykeeper.operator.settings import OperatorSettings


@dataclass(frozen=True)
class Program:
    """Settings, and the real client, listeners, metrics and clock."""

    settings: OperatorSettings
    kube: Kube
    """Not fenced: for reading, and for the Lease itself."""
    serving: Serving
    metrics: KubeMetrics
    clock: Clock
    identity: str
    """Names this very process in the Lease."""

    @property
    def ours(self) -> Ours:
        """Our installation. Its Lease is where the settings say, else with the pod or the kubeconfig's context."""
        leadership = self.settings.leadership
        namespace = leadership.lease_namespace or self.kube.connection.namespace
        return Ours(namespace, leadership.covers, self.identity, leadership.others)
