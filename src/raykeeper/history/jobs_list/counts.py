"""How the jobs of the last day went, all clusters together: counted in the background, so that no page waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from raykeeper.history.jobs_list.find import jobs_of_session
from raykeeper.history.query.history import History
from raykeeper.history.report.model import Outcome
from raykeeper.history.store.catalog_entries import CatalogEntry, SessionFilter
from raykeeper.layout.summaries import JobSummary, SessionSummary

PERIOD = timedelta(days=1)
STARTED_WITHIN = timedelta(days=7)
"""Clusters that are older than this are left out: their jobs are on their own pages."""
MOST_SESSIONS = 5_000
"""The newest, that one look goes through."""
_BELIEVED_SECONDS = 10.0
_PAGE = 500
_READ_AT_ONCE = 32


@dataclass(frozen=True)
class JobCounts:
    """Jobs that ran in the last day."""

    jobs: int = 0
    failed: int = 0
    with_failures: int = 0
    """That ended well all the same."""
    running: int = 0
    running_with_failures: int = 0
    """Of the running ones."""
    is_complete: bool = True
    """All clusters of the last days were looked at; else there are at least as many."""
    is_known: bool = False
    """False before the first look was done."""


async def counts_within(history: History, seconds: float) -> JobCounts:
    """What is known after so many seconds at the latest. Raises what the store raises."""
    look = history.looks.look("job counts", lambda: _count(history), JobCounts(), _BELIEVED_SECONDS)
    return await look.known_within(seconds)


async def _count(history: History) -> JobCounts:
    now = history.clock.now()
    since, within = now - PERIOD, SessionFilter(since=now - STARTED_WITHIN)
    reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(entry: CatalogEntry) -> SessionSummary | None:
        async with reads:
            return (await jobs_of_session(history, entry)).summary

    found, after, looked_at = list[JobSummary](), None, 0
    while looked_at < MOST_SESSIONS:
        page = await history.catalog.page(_PAGE, after, within)
        recent = [entry for entry in page.entries if not _ended_before(entry, since)]
        for summary in await asyncio.gather(*map(read, recent)):
            found += summary.jobs if summary else ()
        looked_at += len(page.entries)
        if (after := page.next_place) is None:
            break
    return replace(counted_jobs(found, since), is_complete=after is None)


def _ended_before(entry: CatalogEntry, since: datetime) -> bool:
    return entry.has_ended and entry.end is not None and entry.end.ended_at < since


def counted_jobs(jobs: Iterable[JobSummary], since: datetime) -> JobCounts:
    """Of those that ran since then. Pure."""
    outcomes = Counter(job.outcome for job in jobs if _ran_since(job, since))
    failing = outcomes[Outcome.FAILING]
    return JobCounts(
        jobs=outcomes.total(),
        failed=outcomes[Outcome.FAILED],
        with_failures=outcomes[Outcome.WITH_FAILURES],
        running=outcomes[Outcome.RUNNING] + failing,
        running_with_failures=failing,
        is_known=True,
    )


def _ran_since(job: JobSummary, since: datetime) -> bool:
    if job.outcome in (Outcome.RUNNING, Outcome.FAILING):
        return True
    last = job.ended_at or job.started_at
    return last is not None and last >= since
