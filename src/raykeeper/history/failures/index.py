"""Looks through the summaries of all sessions for kinds of failure, in the background; no session is opened for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from raykeeper.history.failures.kinds import FailureKind, Run, kinds_of, runs_of
from raykeeper.history.failures.notes import read_notes
from raykeeper.history.query.history import History
from raykeeper.history.store.catalog import Summaries
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.layout.failure_notes import FailureNote
from raykeeper.layout.summaries import SessionSummary

MOST_SESSIONS = 20_000
"""The newest, that one look goes through."""
MOST_TOLD = 300_000
"""Runs and failures together that one look holds, up to half a kilobyte each; older sessions are not looked at."""
MOST_KINDS = 5_000
"""Those seen last; the others are counted."""
_BELIEVED_SECONDS = 60.0
_NOTES_BELIEVED_SECONDS = 2.0  # whoever muted a failure does not want to see it in the list to which they go back
_NO_NOTES: dict[str, FailureNote] = {}
_PAGE = 5000
_READ_AT_ONCE = 32
_AT_A_TIME = 100  # sessions, a millisecond, after which requests have their turn


@dataclass(frozen=True)
class KnownFailures:
    """What one look found."""

    kinds: tuple[FailureKind, ...] = ()
    """The last seen first."""
    notes: dict[str, FailureNote] = field(default_factory=dict)
    """By fingerprint."""
    sessions: int = 0
    """Whose summaries were read."""
    unread: int = 0
    """That have no summary: they run, or nobody has read them yet."""
    left_out: int = 0
    """Kinds that were not seen for the longest time."""
    is_complete: bool = True
    """All sessions were looked at."""
    is_known: bool = False
    """False before the first look was done."""


async def failures_within(history: History, seconds: float) -> KnownFailures:
    """What is known after so many seconds at the latest. Raises what the store raises."""
    kinds = history.looks.look("failures", lambda: _find(history), KnownFailures(), _BELIEVED_SECONDS)
    said = history.looks.look("notes", lambda: read_notes(history), _NO_NOTES, _NOTES_BELIEVED_SECONDS)
    known, notes = await asyncio.gather(kinds.known_within(seconds), said.known_within(seconds))
    return replace(known, notes=notes)


async def _find(history: History) -> KnownFailures:
    runs, looked_at, unread, told, is_complete = list[Run](), 0, 0, 0, False
    async for entry, summary in _summaries(history):
        if looked_at >= MOST_SESSIONS or told >= MOST_TOLD:
            break
        looked_at += 1
        unread += summary is None
        found = list(runs_of(entry.id, entry.start.started_at, summary)) if summary else []
        runs += found
        told += sum(1 + len(run.failures) for run in found)
    else:
        is_complete = True
    now = history.clock.now()
    kinds = await asyncio.to_thread(kinds_of, runs, now)
    return KnownFailures(
        kinds=tuple(kinds[:MOST_KINDS]),
        sessions=looked_at - unread,
        unread=unread,
        left_out=max(0, len(kinds) - MOST_KINDS),
        is_complete=is_complete,
        is_known=True,
    )


async def _summaries(history: History) -> AsyncIterator[tuple[CatalogEntry, SessionSummary | None]]:
    """Every session with its summary, the newest first."""
    catalog, after, is_last = history.catalog, None, False
    while not is_last:
        page = await catalog.page(_PAGE, after)
        for start in range(0, len(page.entries), _AT_A_TIME):
            entries = page.entries[start : start + _AT_A_TIME]
            await _read(catalog.summaries, entries)
            for entry in entries:
                yield entry, await catalog.summaries.find(entry)
            await asyncio.sleep(0)
        after, is_last = page.next_place, page.next_place is None


async def _read(summaries: Summaries, entries: Sequence[CatalogEntry]) -> None:
    """Have the summaries of these sessions in memory."""
    reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(entry: CatalogEntry) -> None:
        async with reads:
            await summaries.find(entry)

    await asyncio.gather(*(read(entry) for entry in entries if not summaries.is_known(entry)))
