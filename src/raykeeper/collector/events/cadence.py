"""When the journal is closed and sealed. Pure."""

from __future__ import annotations

from raykeeper.collector.events.limits import EventSettings

FAIR_AMOUNT_BYTES = 256 * 1024
"""Below this an object is too small to be made every few seconds."""


PRESSED_SEAL_SECONDS = 1.0
"""Age at which even a trickle is sealed when the disk budget runs out: sealed, it takes a tenth."""


def is_due(journal_bytes: int, age_seconds: float, settings: EventSettings, *, is_pressed: bool = False) -> bool:
    """Whether a journal of this size whose first body has this age is to be sealed now."""
    if not journal_bytes:
        return False
    if is_pressed and (journal_bytes >= FAIR_AMOUNT_BYTES or age_seconds >= PRESSED_SEAL_SECONDS):
        return True
    return journal_bytes >= settings.segment_max_bytes or age_seconds >= seal_age(journal_bytes, settings)


def seal_age(journal_bytes: int, settings: EventSettings) -> float:
    """How old a journal of this size may become."""
    is_busy = journal_bytes >= min(FAIR_AMOUNT_BYTES, settings.segment_max_bytes)
    return settings.busy_seal_seconds if is_busy else settings.idle_seal_seconds
