"""Values of the Kubernetes API as facts keep them. Pure."""

from __future__ import annotations

from datetime import datetime

MOST_CHARACTERS = 4096  # a container's termination message may have as many bytes; Events at most 1024
_CUT = "…"


def short(text: str) -> str:
    """The text, cut where it is longer than any that Kubernetes itself makes."""
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + _CUT


def parse_time(text: str | None) -> datetime | None:
    """A time as `metadata` has it; None where there is none."""
    return datetime.fromisoformat(text) if text else None
