"""Kubernetes Events as data: an occurrence is what a reconciler reports, a series the one Event made of equal ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from raykeeper.api.meta import JSON
from raykeeper.kube.microtime import to_micro_time

EventType = Literal["Normal", "Warning"]

# Limits of the API server's validation; note and text fields are counted in bytes.
NOTE_BYTES = 1024
WORD_BYTES = 128
NAME_LENGTH = 253


@dataclass(frozen=True)
class ObjectRef:
    """The object an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def to_json(self) -> JSON:
        fields = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**fields, "namespace": self.namespace} if self.namespace else fields


@dataclass(frozen=True)
class Occurrence:
    """Something that happened to an object; equal ones belong to one series."""

    controller: str
    regarding: ObjectRef
    type: EventType
    reason: str
    action: str
    note: str
    related: ObjectRef | None = None


@dataclass
class Series:
    """One Event object and how far the API server knows it."""

    occurrence: Occurrence
    name: str
    first_time: datetime
    last_time: datetime
    last_seen: float
    count: int = 1
    is_written: bool = False
    updates: int = 0
    is_waiting: bool = True
    """Whether it waits to be written, for the first time or with a new count."""

    @property
    def namespace(self) -> str:
        """Where the Event lives: with its object, or in `default` as all Events of cluster-scoped objects."""
        return self.occurrence.regarding.namespace or "default"


def event_name(object_name: str, stamp: int) -> str:
    """`<object>.<hex>` as client-go names Events, cut where the object's name leaves no room."""
    suffix = f".{stamp:x}"
    return object_name[: NAME_LENGTH - len(suffix)].rstrip("-.") + suffix


def shortened(text: str, limit: int) -> str:
    """The text in at most `limit` bytes of UTF-8, with an ellipsis where something was cut off."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def desired_event(series: Series, instance: str) -> JSON:
    """The Event object of a series."""
    occurrence = series.occurrence
    event: JSON = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": series.name, "namespace": series.namespace},
        "eventTime": to_micro_time(series.first_time),
        "reportingController": occurrence.controller,
        "reportingInstance": shortened(instance, WORD_BYTES),
        "action": shortened(occurrence.action, WORD_BYTES),
        "reason": shortened(occurrence.reason, WORD_BYTES),
        "type": occurrence.type,
        "note": shortened(occurrence.note, NOTE_BYTES),
        "regarding": occurrence.regarding.to_json(),
    }
    if occurrence.related is not None:
        event["related"] = occurrence.related.to_json()
    return {**event, **desired_count(series)} if series.count > 1 else event


def desired_count(series: Series) -> JSON:
    """The part of an Event that may change later: how often, and when last."""
    return {"series": {"count": series.count, "lastObservedTime": to_micro_time(series.last_time)}}
