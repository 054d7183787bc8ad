"""Moments as Kubernetes writes them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: str | None) -> datetime | None:
    """RFC 3339 as a moment; None for what is missing or cannot be read."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def to_time(moment: datetime) -> str:
    """RFC 3339 to the second, as metav1.Time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
