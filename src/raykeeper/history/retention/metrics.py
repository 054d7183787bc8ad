"""What retention tells Prometheus. Namespaces are a bounded label: the largest ones, and one for all others."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from raykeeper.history.metrics import NAMESPACE_LABEL
from raykeeper.history.retention.usage import OTHERS, together
from raykeeper.layout.retention import NamespaceUsage, Usage

MOST_LABELS = 100
"""Namespaces with metrics of their own."""


class RetentionMetrics:
    """Counters of one process; only the replica that sweeps has values other than 0."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sessions = Counter(
            "raykeeper_retention_removed_sessions", "Sessions removed by this process.", registry=registry
        )
        self.bytes = Counter("raykeeper_retention_removed_bytes", "Bytes of these sessions.", registry=registry)
        self.failures = Counter(
            "raykeeper_retention_failures", "Sweeps that ended before they were done.", registry=registry
        )
        self.last_success = Gauge(
            "raykeeper_retention_last_success_timestamp_seconds",
            "When this process last finished a sweep, in seconds since 1970; 0 if it never did.",
            registry=registry,
        )
        self.under_way = Gauge(
            "raykeeper_retention_removals_under_way",
            "Sessions that are hidden and not yet deleted, as this process last saw.",
            registry=registry,
        )
        labels = (NAMESPACE_LABEL,)
        self._stored = Gauge(
            "raykeeper_storage_bytes", "Bytes of a namespace's sessions in the store.", labels, registry=registry
        )
        self._objects = Gauge("raykeeper_storage_objects", "Objects of these sessions.", labels, registry=registry)
        self._sessions = Gauge("raykeeper_storage_sessions", "Sessions of a namespace.", labels, registry=registry)

    def show(self, usage: Usage) -> None:
        """Replace what namespaces have; those that are gone have no metrics any more."""
        rest = [*usage.namespaces[MOST_LABELS:], *([usage.others] if usage.others else [])]
        told: list[NamespaceUsage] = [*usage.namespaces[:MOST_LABELS], *([together(rest, OTHERS)] if rest else [])]
        self.hide()
        for one in told:
            self._stored.labels(one.namespace).set(one.bytes)
            self._objects.labels(one.namespace).set(one.objects)
            self._sessions.labels(one.namespace).set(one.sessions)

    def hide(self) -> None:
        """Say nothing about namespaces: another replica does."""
        for gauge in (self._stored, self._objects, self._sessions):
            gauge.clear()
