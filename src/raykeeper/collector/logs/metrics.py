"""What the log shipper counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class LogMetrics:
    """Counters and gauges of one shipper. They count on where no registry shows them, as in tests."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        names = "raykeeper_collector_log"
        self.files = Gauge(f"{names}_files", "Log files that are followed", registry=registry)
        self.open_files = Gauge(f"{names}_open_files", "Log files that are kept open", registry=registry)
        self.unsent_bytes = Gauge(f"{names}_unsent_bytes", "Bytes of logs that the bucket lacks", registry=registry)
        self.oldest_unsent_seconds = Gauge(
            f"{names}_oldest_unsent_seconds", "How long the oldest of those bytes have waited", registry=registry
        )
        self.sent_bytes = Counter(f"{names}_sent_bytes", "Bytes of logs that the bucket has taken", registry=registry)
        self.packs = Counter(f"{names}_packs", "Packs that the bucket has taken", registry=registry)
        self.pack_bytes = Counter(f"{names}_pack_bytes", "Bytes of these packs, compressed", registry=registry)
        self.lost_bytes = Counter(f"{names}_lost_bytes", "Bytes of logs that were given up", registry=registry)
        self.unreadable = Counter(
            f"{names}_unreadable_files", "Files and folders that could not be read, each once", registry=registry
        )
        self.failures = Counter(f"{names}_failures", "Rounds that failed because of a bug", registry=registry)
