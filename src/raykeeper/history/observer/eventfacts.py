"""From a Kubernetes Event, in either of the two forms in which components write them, to what is kept of it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from raykeeper.api.meta import Object, Resource
from raykeeper.history.observer.texts import parse_time, short
from raykeeper.layout.kube_facts import EventFact


class _About(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Source(msgspec.Struct):
    component: str = ""
    host: str = ""


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: datetime | None = None


class KubeEvent(Object, rename="camel"):
    """An Event of the core API, which shows those of `events.k8s.io` too."""

    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""
    type: str = ""
    source: _Source = msgspec.field(default_factory=_Source)
    reporting_component: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: _Series | None = None


KUBE_EVENTS: Final[Resource[KubeEvent]] = Resource("", "v1", "events", "Event", KubeEvent)


def event_fact(event: KubeEvent, seen_at: datetime) -> EventFact:
    """What the Event says; `seen_at` is its time where it has none."""
    about, series = event.involved_object, event.series or _Series()
    made_at = parse_time(event.metadata.creation_timestamp) or seen_at
    first_at = event.first_timestamp or event.event_time or made_at
    return EventFact(
        at=max(first_at, series.last_observed_time or event.last_timestamp or first_at),
        uid=event.metadata.uid,
        first_at=first_at,
        count=max(1, series.count, event.count or 0),
        type=event.type,
        reason=event.reason,
        message=short(event.message),
        about_kind=about.kind,
        about_name=about.name,
        about_uid=about.uid,
        component=event.source.component or event.reporting_component,
        host=event.source.host,
    )
