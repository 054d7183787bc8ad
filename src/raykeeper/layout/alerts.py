"""Which alerts were sent, so that replicas send each of them once: keys and records. Pure data.

Of one alert, attempt `n` belongs to whoever created `claim-<n>.json`. `sent.json` or `gave-up.json` ends it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from raykeeper.layout.keys import VERSION, RayJobId, SessionId
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.records import Record

ALERTS_PREFIX = f"{VERSION}/alerts/"
_MARK = re.compile(r"(?P<receiver>[^/]+)/(?P<job>[^/]+)/(?P<mark>claim-(?P<number>\d{6})|sent|gave-up)\.json")


class AlertMark(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Who claimed, sent or gave up."""

    limit_bytes: ClassVar[int] = 4096
    owner: str
    """Random, of one attempt."""
    at: datetime
    """By the writer's clock; the object's own time counts."""


def receiver_key(receiver: str) -> str:
    """Created when a receiver is first seen: of jobs that ended before, it is told nothing."""
    return f"{ALERTS_PREFIX}receivers/{to_segment(receiver)}.json"


def session_alerts_prefix(session: SessionId) -> str:
    names = (session.namespace, session.cluster, session.session)
    return f"{ALERTS_PREFIX}sessions/{'/'.join(map(to_segment, names))}/"


def rayjob_alerts_prefix(rayjob: RayJobId) -> str:
    """Of a RayJob that has no session."""
    names = (rayjob.namespace, rayjob.rayjob, rayjob.uid)
    return f"{ALERTS_PREFIX}rayjobs/{'/'.join(map(to_segment, names))}/"


@dataclass(frozen=True)
class AlertKey:
    """One alert: below which prefix, to whom, about which job."""

    prefix: str
    receiver: str
    job: str

    @property
    def folder(self) -> str:
        return f"{self.prefix}{to_segment(self.receiver)}/{to_segment(self.job)}/"

    def claim(self, attempt: int) -> str:
        return f"{self.folder}claim-{attempt:06d}.json"

    @property
    def sent(self) -> str:
        return f"{self.folder}sent.json"

    @property
    def gave_up(self) -> str:
        return f"{self.folder}gave-up.json"


def parse_mark_key(prefix: str, key: str) -> tuple[AlertKey, int | None] | None:
    """Which alert an object below the prefix is about, and which attempt it claims; None: it ends the alert."""
    found = _MARK.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
    if found is None:
        return None
    try:
        alert = AlertKey(prefix, from_segment(found["receiver"]), from_segment(found["job"]))
    except ValueError:
        return None
    return alert, int(found["number"]) if found["number"] else None
