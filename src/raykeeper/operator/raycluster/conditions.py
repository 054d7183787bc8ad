"""The conditions of a RayCluster: each says one thing, and since when. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from raykeeper.api.conditions import Condition, ConditionStatus, find_condition

HEAD_POD_READY = "HeadPodReady"
PROVISIONED = "RayClusterProvisioned"
REPLICA_FAILURE = "ReplicaFailure"
INVALID = "RayClusterInvalid"
"""Ours: the spec cannot be worked on, and why. There only while that is so."""

_NO_REASON_CHARACTER = re.compile(r"[^A-Za-z0-9_,:]")


@dataclass(frozen=True)
class Finding:
    """What a condition should say now."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def updated(
    known: tuple[Condition, ...], findings: Iterable[Finding], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """The conditions that state the findings, in their order; the time of one moves only when its status does."""
    return tuple(_condition(find_condition(known, finding.type), finding, generation, now) for finding in findings)


def _condition(known: Condition | None, finding: Finding, generation: int, now: datetime) -> Condition:
    is_same = known is not None and known.status == finding.status
    since = known.last_transition_time if known is not None and is_same else to_time(now)
    reason = to_reason(finding.reason)
    return Condition(finding.type, finding.status, reason, finding.message[:32768], since, generation)


def to_reason(text: str) -> str:
    """A word that Kubernetes takes for a reason; containers may report anything."""
    word = _NO_REASON_CHARACTER.sub("", text).strip(",:0123456789_")
    return word or "Unknown"


def to_time(moment: datetime) -> str:
    """RFC 3339 to the second, as metav1.Time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
