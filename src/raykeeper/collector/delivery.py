"""Upload progress for heartbeats and end records: of all nodes of the pod, and of one node."""

from __future__ import annotations

from raykeeper.collector.events.path import EventPath
from raykeeper.collector.logs.shipper import LogShipper
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.node_records import LeftBehind
from raykeeper.collector.sessions import SessionWatch
from raykeeper.layout.records import MAX_COUNT, Delivery


def observe_delivery(events: EventPath, shipper: LogShipper | None, metrics: CollectorMetrics) -> Delivery:
    """The figures of this moment, over all nodes of the pod."""
    figures = events.figures
    oldest = [events.oldest_unsent_seconds, shipper.oldest_unsent_seconds if shipper else 0.0]
    return Delivery(
        events_accepted=figures.events_accepted,
        events_set_aside=figures.events_set_aside,
        batches_refused=figures.batches_refused,
        unsent_event_bytes=events.unsent_bytes,
        unsent_log_bytes=min(shipper.unsent_bytes, MAX_COUNT) if shipper else 0,
        oldest_unsent_seconds=round(max(oldest), 3),
        lost_log_bytes=min(shipper.lost_bytes, MAX_COUNT) if shipper else 0,
        upload_errors=metrics.put_error_count(),
    )


async def observe_left_by(
    session: str, node_id: str, sessions: SessionWatch, events: EventPath, shipper: LogShipper | None
) -> LeftBehind:
    """What of a node's data is not in the bucket, where another has taken its place."""
    logs = await shipper.missing_logs() if shipper else []
    return LeftBehind(
        missing_logs=tuple(missing for group, missing in logs if group == (session, node_id)),
        missing_event_bytes=events.unsent_of(session, node_id, sessions.replaced_ns(session, node_id)),
    )
