"""Every metric of the runtime, under the names that client-go and controller-runtime gave them.

Existing dashboards and alerts for KubeRay's operator keep working. One `KubeMetrics` per process is made in a program's
`main.py` and handed down.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# client-go's own buckets, so that quantiles can be compared with those of Go programs.
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE_BUCKETS = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
# controller-runtime's.
_QUEUE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))
_RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
_QUEUE_LABELS = ["name", "controller"]

RECONCILE_RESULTS = ("success", "error", "requeue", "requeue_after")


class KubeMetrics:
    """The counters, gauges and histograms of client, informers, queues, controllers and leader election."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._client(registry)
        self._informer(registry)
        self._queue(registry)
        self._controller(registry)
        self._election(registry)
        self._events(registry)

    def _client(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "rest_client_requests_total",
            "Requests sent to the API server, by status code (<error> where none came), method and host",
            ["code", "method", "host"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time from sending a request to the end of its answer's headers",
            ["verb", "host"],
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self.dns_seconds = Histogram(
            "rest_client_dns_resolution_duration_seconds",
            "Time to find the addresses of the API server's name",
            ["host"],
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self.rate_limiter_seconds = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time a request waited for our own rate limit",
            ["verb", "host"],
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self.request_bytes = Histogram(
            "rest_client_request_size_bytes",
            "Size of request bodies",
            ["verb", "host"],
            buckets=_SIZE_BUCKETS,
            registry=registry,
        )
        self.response_bytes = Histogram(
            "rest_client_response_size_bytes",
            "Size of whole answers; streams are not counted",
            ["verb", "host"],
            buckets=_SIZE_BUCKETS,
            registry=registry,
        )
        self.retries = Counter(
            "rest_client_request_retries_total",
            "Requests sent again after 429 or 5xx with Retry-After",
            ["code", "verb", "host"],
            registry=registry,
        )

    def _informer(self, registry: CollectorRegistry) -> None:
        self.informer_lists = Counter(
            "raykeeper_informer_lists_total", "Full lists, the first one included", ["resource"], registry=registry
        )
        self.informer_watch_ends = Counter(
            "raykeeper_informer_watch_ends_total",
            "Watches that ended, by cause (timeout, expired, silent, error)",
            ["resource", "cause"],
            registry=registry,
        )
        self.informer_objects = Gauge(
            "raykeeper_informer_objects", "Objects in the cache", ["resource"], registry=registry
        )

    def _queue(self, registry: CollectorRegistry) -> None:
        self.queue_depth = Gauge(
            "workqueue_depth", "Keys waiting for a worker", [*_QUEUE_LABELS, "priority"], registry=registry
        )
        self.queue_adds = Counter("workqueue_adds_total", "Keys added", _QUEUE_LABELS, registry=registry)
        self.queue_retries = Counter(
            "workqueue_retries_total", "Keys added again after a failure", _QUEUE_LABELS, registry=registry
        )
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "Time a key waited for a worker",
            _QUEUE_LABELS,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.work_seconds = Histogram(
            "workqueue_work_duration_seconds",
            "Time a worker spent on a key",
            _QUEUE_LABELS,
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.unfinished_seconds = Gauge(
            "workqueue_unfinished_work_seconds",
            "Work in progress, summed over workers",
            _QUEUE_LABELS,
            registry=registry,
        )
        self.longest_seconds = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Age of the oldest work in progress",
            _QUEUE_LABELS,
            registry=registry,
        )

    def _controller(self, registry: CollectorRegistry) -> None:
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by result (success, error, requeue, requeue_after)",
            ["controller", "result"],
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed", ["controller"], registry=registry
        )
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed and are not tried again until the object changes",
            ["controller"],
            registry=registry,
        )
        self.reconcile_panics = Counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that failed by a bug of ours",
            ["controller"],
            registry=registry,
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Time of one reconcile",
            ["controller"],
            buckets=_RECONCILE_BUCKETS,
            registry=registry,
        )
        self.max_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of a controller", ["controller"], registry=registry
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers", "Workers busy with a key", ["controller"], registry=registry
        )

    def show_controller(self, name: str, workers: int) -> None:
        """Let all series of a controller start at 0: what appears with its first failure alerts nobody."""
        self.max_workers.labels(name).set(workers)
        for counter in (self.reconcile_errors, self.terminal_errors, self.reconcile_panics):
            counter.labels(name)
        for result in RECONCILE_RESULTS:
            self.reconciles.labels(name, result)

    def _election(self, registry: CollectorRegistry) -> None:
        self.leading = Gauge(
            "leader_election_master_status", "1 while this process leads, else 0", ["name"], registry=registry
        )
        self.slow_renewals = Counter(
            "leader_election_slowpath_total",
            "Renewals that had to read the lease first, because the write before had failed",
            ["name"],
            registry=registry,
        )
        self.withheld_writes = Counter(
            "raykeeper_withheld_writes_total", "Writes not sent because the lease was not certain", registry=registry
        )

    def _events(self, registry: CollectorRegistry) -> None:
        self.events_written = Counter(
            "raykeeper_events_written_total", "Kubernetes Events created or updated", registry=registry
        )
        self.events_dropped = Counter(
            "raykeeper_events_dropped_total", "Kubernetes Events given up, by cause", ["cause"], registry=registry
        )
