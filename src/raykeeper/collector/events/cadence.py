"""When the journal is closed and sealed. Pure."""

from __future__ import annotations

from raykeeper.collector.events.limits import EventSettings

FAIR_AMOUNT_BYTES = 256 * 1024
"""Below this an object is too small to be made every few seconds."""


def is_due(journal_bytes: int, age_seconds: float, settings: EventSettings) -> bool:
    """Whether a journal of this size whose first body has this age is to be sealed now."""
    if journal_bytes >= settings.segment_max_bytes:
        return True
    return journal_bytes > 0 and age_seconds >= seal_age(journal_bytes, settings)


def seal_age(journal_bytes: int, settings: EventSettings) -> float:
    """How old a journal of this size may become."""
    is_busy = journal_bytes >= min(FAIR_AMOUNT_BYTES, settings.segment_max_bytes)
    return settings.busy_seal_seconds if is_busy else settings.idle_seal_seconds
