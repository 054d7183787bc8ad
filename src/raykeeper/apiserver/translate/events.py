"""Kubernetes Events, as the API shows them beside clusters and services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from raykeeper.api.meta import JSON
from raykeeper.apiserver.protos.cluster_pb2 import ClusterEvent
from raykeeper.apiserver.protos.serve_pb2 import RayServiceEvent
from raykeeper.apiserver.translate.moments import to_timestamp

E = TypeVar("E", ClusterEvent, RayServiceEvent)


def cluster_events(cluster_name: str, events: Sequence[JSON]) -> list[ClusterEvent]:
    return [_filled(ClusterEvent(), cluster_name, event) for event in events]


def service_events(service_name: str, events: Sequence[JSON]) -> list[RayServiceEvent]:
    return [_filled(RayServiceEvent(), service_name, event) for event in events]


def _filled(message: E, owner: str, event: JSON) -> E:
    """Of an event of `events.k8s.io/v1`, whether its writer used the old fields or those of a series."""
    metadata, series = event.get("metadata") or {}, event.get("series") or {}
    first = event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("deprecatedLastTimestamp") or series.get("lastObservedTime") or first
    message.id = metadata.get("name", "")
    message.name = f"{owner}-{message.id}"
    message.created_at.CopyFrom(to_timestamp(metadata.get("creationTimestamp")))
    message.first_timestamp.CopyFrom(to_timestamp(first))
    message.last_timestamp.CopyFrom(to_timestamp(last))
    message.reason = event.get("reason", "")
    message.message = event.get("note", "")
    message.type = event.get("type", "")
    message.count = event.get("deprecatedCount") or series.get("count") or 1
    return message
