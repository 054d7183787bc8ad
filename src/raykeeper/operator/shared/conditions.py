"""Conditions of any object: each says one thing, and since when. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from raykeeper.api.conditions import Condition, ConditionStatus, find_condition
from raykeeper.api.times import to_time

_NO_REASON_CHARACTER = re.compile(r"[^A-Za-z0-9_,:]")


@dataclass(frozen=True)
class Finding:
    """What a condition should say now."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def updated(
    known: tuple[Condition, ...], findings: Iterable[Finding], ours: Collection[str], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """The conditions that state the findings; the time of one moves only when its status does.

    Of the types that are `ours`, those without a finding go. What others wrote stays as it is, and all in their places.
    """
    stated = {
        finding.type: _condition(find_condition(known, finding.type), finding, generation, now) for finding in findings
    }
    kept = [stated.pop(one.type, one) for one in known if one.type in stated or one.type not in ours]
    return (*kept, *stated.values())


def foreign(known: tuple[Condition, ...], ours: Collection[str]) -> tuple[Condition, ...]:
    """The conditions that others wrote."""
    return tuple(one for one in known if one.type not in ours)


def _condition(known: Condition | None, finding: Finding, generation: int, now: datetime) -> Condition:
    is_same = known is not None and known.status == finding.status
    since = known.last_transition_time if known is not None and is_same else to_time(now)
    reason = to_reason(finding.reason)
    return Condition(finding.type, finding.status, reason, finding.message[:32768], since, generation)


def to_reason(text: str) -> str:
    """A word that Kubernetes takes for a reason; containers may report anything."""
    word = _NO_REASON_CHARACTER.sub("", text).strip(",:0123456789_")
    return word or "Unknown"
