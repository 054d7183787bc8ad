"""Kubernetes' MicroTime: RFC 3339 in UTC with exactly six digits after the second. Go refuses any other number."""

from __future__ import annotations

from datetime import UTC, datetime


def to_micro_time(moment: datetime) -> str:
    """The moment as Leases and Events spell it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_micro_time(text: str | None) -> datetime | None:
    """The moment in UTC; None where the field is missing."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
