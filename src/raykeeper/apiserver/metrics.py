"""What the API server tells Prometheus, under the names that KubeRay's has: those of go-grpc-prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, ProcessCollector

from raykeeper.apiserver.errors import Code
from raykeeper.apiserver.services.table import Call

_LABELS = ("grpc_type", "grpc_service", "grpc_method")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_UNARY = "unary"


class ApiMetrics:
    """Counters of one process. Calls over HTTP count as those over gRPC do, since KubeRay's gateway passes them on."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._started = Counter("grpc_server_started_total", "Calls begun.", _LABELS, registry=registry)
        self._received = Counter("grpc_server_msg_received_total", "Requests read.", _LABELS, registry=registry)
        self._sent = Counter("grpc_server_msg_sent_total", "Answers sent.", _LABELS, registry=registry)
        self._handled = Counter(
            "grpc_server_handled_total", "Calls ended, by code.", (*_LABELS, "grpc_code"), registry=registry
        )
        self._seconds = Histogram(
            "grpc_server_handling_seconds", "Time that calls took.", _LABELS, buckets=_SECONDS, registry=registry
        )
        self.bugs = Counter(
            "raykeeper_apiserver_bugs",
            "Requests that failed by an error nobody foresaw; the log has the traceback.",
            registry=registry,
        )
        self.v2_requests = Counter(
            "raykeeper_apiserver_v2_requests",
            "Requests of V2, by method and status.",
            ("method", "code"),
            registry=registry,
        )
        for call in calls:  # so that a rate is there before the first call
            labels = _labels(call)
            for counter in (self._started, self._received, self._sent, self._seconds):
                counter.labels(*labels)
            for code in Code:
                self._handled.labels(*labels, code.name)

    def began(self, call: Call) -> None:
        self._started.labels(*_labels(call)).inc()
        self._received.labels(*_labels(call)).inc()

    def ended(self, call: Call, code: Code, seconds: float) -> None:
        labels = _labels(call)
        self._handled.labels(*labels, code.name).inc()
        self._seconds.labels(*labels).observe(seconds)
        if code is Code.OK:
            self._sent.labels(*labels).inc()


def _labels(call: Call) -> tuple[str, str, str]:
    return _UNARY, call.service, call.name
