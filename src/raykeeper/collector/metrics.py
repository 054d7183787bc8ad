"""Every metric of the collector. One `CollectorMetrics` per process is made at its start and handed down."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PUT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PREFIX = "raykeeper_collector_"


class CollectorMetrics:
    """Counters, gauges and histograms of events, logs, polls, records and the bucket."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._events()
        self._bucket()
        self._logs()
        self._head()
        self._samples()

    def _events(self) -> None:
        self.batches = self._counter("batches", "Batches of events that Ray posted")
        self.batch_bytes = self._counter("batch_bytes", "Bytes of the batches that Ray posted")
        self.answers = self._counter("answers", "Answers of the event sink, by status", "status")
        self.batches_refused = self._counter("batches_refused", "Batches refused because the disk budget was used up")
        self.events_accepted = self._counter("events_accepted", "Events filed under their session and node")
        self.events_set_aside = self._counter("events_set_aside", "Pieces of batches set aside, by reason", "reason")
        self.bad_node_ids = self._counter("bad_node_ids", "Node ids in events that could not be read")
        self.event_segments = self._counter("event_segments", "Objects sealed from events")
        self.event_segment_bytes = self._counter("event_segment_bytes", "Bytes of the objects sealed from events")
        self.seal_errors = self._counter("seal_errors", "Journals that could not be sealed, and are tried again")
        self.event_unsent_bytes = self._gauge("event_unsent_bytes", "Bytes of events on disk that the bucket lacks")
        self.event_unsent_seconds = self._gauge("event_unsent_seconds", "Age of the oldest event the bucket lacks")
        self.spool_bytes = self._gauge("spool_bytes", "Bytes of the disk budget that are used")
        self.spool_max_bytes = self._gauge("spool_max_bytes", "The disk budget")

    def _bucket(self) -> None:
        self.bucket_up = self._gauge("bucket_up", "1 while the bucket takes objects, else 0")
        self.puts = self._counter("puts", "Objects that the bucket took")
        self.put_bytes = self._counter("put_bytes", "Bytes that the bucket took")
        self.put_errors = self._counter(
            "put_errors", "Puts that failed and were tried again, by cause (unavailable, refused)", "cause"
        )
        self.objects_refused = self._counter("objects_refused", "Objects that the store refuses for good, set aside")
        self.put_seconds = Histogram(
            f"{_PREFIX}put_seconds", "Time of one successful put", buckets=_PUT_BUCKETS, registry=self.registry
        )

    def _logs(self) -> None:
        self.log_files = self._gauge("log_files", "Log files that are followed")
        self.log_packs = self._counter("log_packs", "Objects made of log files")
        self.log_bytes = self._counter("log_bytes", "Bytes of log files that the bucket has")
        self.log_pack_bytes = self._counter("log_pack_bytes", "Bytes of the objects made of log files")
        self.log_lost_bytes = self._counter("log_lost_bytes", "Bytes of log files given up")
        self.log_read_errors = self._counter("log_read_errors", "Log files that could not be read")
        self.log_folders_left_out = self._gauge("log_folders_left_out", "Folders with more log files than are followed")
        self.log_unsent_bytes = self._gauge("log_unsent_bytes", "Bytes of log files that the bucket lacks")
        self.log_unsent_seconds = self._gauge("log_unsent_seconds", "Age of the oldest log line the bucket lacks")

    def _head(self) -> None:
        outcomes = "answered, error, unanswered, refused, oversized"
        self.polls = self._counter("polls", f"Questions to the head's dashboard, by outcome ({outcomes})", "outcome")
        self.polled_answers = self._counter("polled_answers", "Answers of the dashboard that were stored")
        self.polled_lost = self._counter("polled_lost", "Answers given up while the bucket was away")
        self.heartbeats = self._counter("heartbeats", "Heartbeats written")
        self.ray_dropped_events = self._gauge("ray_dropped_events", "Events that Ray itself dropped, by its own count")

    def _samples(self) -> None:
        self.samples = self._counter(
            "samples", "Samples of the node's resources; partial ones lack what Ray's agent did not show", "kind"
        )
        self.samples_lost = self._counter("samples_lost", "Samples given up while the disk or the bucket was away")

    def batch_received(self, size: int) -> None:
        self.batches.inc()
        self.batch_bytes.inc(size)

    def answered(self, status: int) -> None:
        self.answers.labels(status).inc()

    def put_error_count(self) -> int:
        """Puts that failed since the start, for heartbeats."""
        samples = (sample for metric in self.put_errors.collect() for sample in metric.samples)
        return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))

    def watch(self, gauge: Gauge, value: Callable[[], float]) -> None:
        """Ask for a gauge's value whenever metrics are read."""
        gauge.set_function(value)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(_PREFIX + name, text, registry=self.registry)
