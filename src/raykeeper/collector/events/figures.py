"""What the event path counts, for metrics, heartbeats and the end record; and the lines about refused batches."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING

from raykeeper.logs import Log

if TYPE_CHECKING:
    from raykeeper.collector.events.filing import Filing
    from raykeeper.collector.metrics import CollectorMetrics

log = Log("raykeeper.collector.events")


class EventFigures:
    """Counts since the start of this process."""

    def __init__(self, metrics: CollectorMetrics) -> None:
        self.events_accepted = 0
        self.events_set_aside = 0
        self.batches_refused = 0
        self._metrics = metrics
        self._is_refusing = False

    def batch_received(self, size: int) -> None:
        self._metrics.batch_received(size)

    def answered(self, status: HTTPStatus) -> None:
        """Count an answer to a batch. That batches are refused is said once, and once that they are not any more."""
        self._metrics.answered(status.value)
        is_refusal = status is HTTPStatus.SERVICE_UNAVAILABLE
        if is_refusal:
            self.batches_refused += 1
            self._metrics.batches_refused.inc()
        if is_refusal and not self._is_refusing:
            log.error("events refused: no room on disk until the bucket takes what is there")
        elif self._is_refusing and not is_refusal:
            log.info("events accepted again", refused_so_far=self.batches_refused)
        self._is_refusing = is_refusal

    def sealed(self, filing: Filing) -> None:
        """Count what one journal held, once it is safe outside of the journal."""
        self.events_accepted += filing.event_count
        self.events_set_aside += len(filing.set_aside)
        self._metrics.events_accepted.inc(filing.event_count)
        self._metrics.bad_node_ids.inc(filing.bad_node_ids)
        for reason, count in Counter(piece.reason.partition(":")[0] for piece in filing.set_aside).items():
            self._metrics.events_set_aside.labels(reason).inc(count)

    def segment_made(self, size: int) -> None:
        self._metrics.event_segments.inc()
        self._metrics.event_segment_bytes.inc(size)

    def seal_failed(self) -> None:
        self._metrics.seal_errors.inc()
