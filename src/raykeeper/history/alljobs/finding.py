"""Finds a page of the jobs of all clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from raykeeper.errors import RaykeeperError
from raykeeper.history.alljobs.lastword import last_word
from raykeeper.history.alljobs.paging import BLOCK, JobOfSession, JobsPlace, cut_page
from raykeeper.history.catalog import EVERY_SESSION
from raykeeper.history.entries import CatalogEntry, SessionFilter, has_words
from raykeeper.history.parts import Parts
from raykeeper.history.state import State
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log

_READ_AT_ONCE = 32
_CHUNK = 64
_OPENED_AT_ONCE = 4  # sessions without a summary that one page has read to their end, in the background
_NUDGE_SECONDS = 0.01

log = Log("raykeeper.history.jobs")


@dataclass(frozen=True)
class WantedJobs:
    """What is asked of the list."""

    limit: int
    after: JobsPlace | None = None
    within: SessionFilter = EVERY_SESSION
    """Which sessions; its text is looked for in the job as well."""
    status: str = ""

    def matches(self, found: JobOfSession) -> bool:
        start, job = found.entry.start, found.job
        names = (start.namespace, start.cluster, found.entry.owner, job.name, job.entrypoint, job.failure)
        metadata = (f"{name}={value}" for name, value in job.metadata.items())
        return self.status in ("", job.status) and has_words(self.within.text, *names, *metadata)


@dataclass(frozen=True)
class FoundJobs:
    jobs: tuple[JobOfSession, ...]
    next_place: JobsPlace | None
    unread: int
    """Sessions of which nothing is known yet; they are being read."""
    left_out: int
    """Older jobs of sessions that had more than a summary holds."""
    unreadable: int
    """Entries of the catalog that could not be read."""


@dataclass
class _Tally:
    jobs: list[JobOfSession] = field(default_factory=list)
    unread: int = 0
    left_out: int = 0
    to_open: list[CatalogEntry] = field(default_factory=list)


async def find_jobs(parts: Parts, wanted: WantedJobs) -> FoundJobs:
    """The newest jobs of those wanted, or those next to a place in the list."""
    after = wanted.after
    page = await parts.catalog.page(BLOCK, after.block if after else None, _without_text(wanted.within))
    tally, entries = _Tally(), list(page.entries)
    while entries:
        chunk, entries = entries[:_CHUNK], entries[_CHUNK:]
        await _take_in(parts, chunk, wanted, tally)
        entries = _worth_reading(entries, tally.jobs, wanted)
    await _nudge(parts, tally.to_open)
    cut = cut_page(tally.jobs, wanted.limit, after, [entry.place for entry in page.entries], page.next_place)
    return FoundJobs(cut.jobs, cut.next_place, tally.unread, tally.left_out, page.unreadable)


def _without_text(within: SessionFilter) -> SessionFilter:
    return SessionFilter(within.namespace, within.cluster, within.owner, within.since, within.until)


async def _take_in(parts: Parts, entries: Sequence[CatalogEntry], wanted: WantedJobs, tally: _Tally) -> None:
    reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(entry: CatalogEntry) -> tuple[SessionSummary | None, bool]:
        async with reads:
            return await _jobs_of(parts, entry)

    for entry, (summary, is_over) in zip(entries, await asyncio.gather(*map(read, entries)), strict=True):
        if is_over and entry.summary_written is None:
            tally.to_open.append(entry)
        if summary is None:
            tally.unread += 1
            continue
        tally.left_out += summary.left_out
        found = (JobOfSession(entry, job, is_over) for job in summary.jobs)
        tally.jobs += filter(wanted.matches, found)


async def _jobs_of(parts: Parts, entry: CatalogEntry) -> tuple[SessionSummary | None, bool]:
    """What is known of a session's jobs, and whether it is over."""
    if (summary := await parts.catalog.summaries.find(entry)) is not None:
        return summary, True
    is_over = entry.has_ended or (await parts.heartbeats.verdict(entry.id)).state is not State.RUNNING
    ended_at = entry.end.ended_at if entry.end and entry.has_ended else None
    return await last_word(parts.catalog.store, entry.id, ended_at, is_over=is_over), is_over


def _worth_reading(
    entries: Iterable[CatalogEntry], jobs: Sequence[JobOfSession], wanted: WantedJobs
) -> list[CatalogEntry]:
    """Those that may have a job for this page: once it is full, none that ended before the last one on it began."""
    left = [job.place for job in jobs if wanted.after is None or wanted.after.is_before(job)]
    if len(left) <= wanted.limit:
        return list(entries)
    last = sorted(left, reverse=True)[wanted.limit].started_at
    return [entry for entry in entries if not (entry.has_ended and entry.end and entry.end.ended_at < last)]


async def _nudge(parts: Parts, entries: Sequence[CatalogEntry]) -> None:
    """Have some sessions read to their end, which leaves a summary; nobody waits for it here."""
    for entry in entries[:_OPENED_AT_ONCE]:
        try:
            async with asyncio.timeout(_NUDGE_SECONDS):
                await parts.sessions.open(entry.id)  # what it began goes on when we stop waiting
        except TimeoutError:
            continue
        except RaykeeperError as exc:
            log.debug("session could not be opened for its jobs", session=str(entry.id), error=str(exc))
