"""What the observer tells Prometheus; whether it leads is `leader_election_master_status`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class ObserverMetrics:
    """Counters of one process, in the registry of its program."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.segments = Counter(
            "raykeeper_observer_segments", "Segments of Kubernetes facts written.", registry=registry
        )
        self.facts = Counter("raykeeper_observer_facts", "Kubernetes facts written.", registry=registry)
        self.lost = Counter(
            "raykeeper_observer_facts_lost",
            "Kubernetes facts given up because too many waited, by kind (pod, event).",
            ("kind",),
            registry=registry,
        )
        self.waiting = Gauge("raykeeper_observer_facts_waiting", "Kubernetes facts not written yet.", registry=registry)
        self.lag = Gauge(
            "raykeeper_observer_lag_seconds", "Age of the oldest Kubernetes fact not written yet.", registry=registry
        )
        self.rayjobs = Counter("raykeeper_observer_rayjob_writes", "Records of RayJobs written.", registry=registry)
        self.write_failures = Counter(
            "raykeeper_observer_write_failures",
            "Writes to the store that failed and are tried again.",
            registry=registry,
        )
        self.closed = Counter(
            "raykeeper_observer_sessions_closed",
            "Sessions whose end was written down, by reason.",
            ("reason",),
            registry=registry,
        )
