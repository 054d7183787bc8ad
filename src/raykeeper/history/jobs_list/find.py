"""Finds a page of the jobs of all clusters: from summaries of past sessions, and from the last poll of running ones."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from raykeeper.errors import RaykeeperError
from raykeeper.history.entities.job import Job, ended_with_cluster, newest_first, rays_jobs, script_name
from raykeeper.history.entities.job_list import POLLED
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.jobs_list.summary import ENTRYPOINT_CHARS, SUMMARY_VERSION, job_summary
from raykeeper.history.query.history import History
from raykeeper.history.store.catalog import EVERY_SESSION
from raykeeper.history.store.catalog_entries import CatalogEntry, Place, SessionFilter, has_words, parse_place
from raykeeper.history.store.records import find_answer
from raykeeper.history.store.session_state import State, listed_state
from raykeeper.layout.keys import PolledKey, SessionId, parse_polled_key
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.polled import DamagedAnswer, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.layout.summaries import JOBS_LIMIT, JobSummary, SessionSummary
from raykeeper.logs import Log
from raykeeper.masking import masked_value
from raykeeper.storage.store import ObjectStore

BLOCK = 500
"""Sessions whose jobs one page looks at: half a second of small reads where nothing is in memory yet."""
_BETWEEN = "!"  # occurs in no encoded name


@dataclass(frozen=True)
class JobOfSession:
    """One job, and the session it ran in."""

    entry: CatalogEntry
    job: JobSummary
    is_session_doubtful: bool = False
    """It counts as running, but its head missed a heartbeat."""

    @property
    def place(self) -> JobPlace:
        return JobPlace(self.job.started_at or self.entry.start.started_at, self.entry.id, self.job.name)


@dataclass(frozen=True, order=True)
class JobPlace:
    """Where in the list of jobs one is."""

    started_at: datetime
    session: SessionId
    job: str


@dataclass(frozen=True)
class JobsPlace:
    """Where a page of jobs begins."""

    block: Place
    """The block's sessions are behind this place."""
    job: JobPlace | None = None
    """The last one listed of the block; None where none was."""

    def __str__(self) -> str:
        """One word for a URL."""
        if self.job is None:
            return str(self.block)
        session = Place(self.job.started_at, self.job.session)
        return _BETWEEN.join([str(self.block), str(session), to_segment(self.job.job) if self.job.job else ""])

    def is_before(self, job: JobOfSession) -> bool:
        """Whether a job of the block is not listed yet."""
        return self.job is None or job.place < self.job


def parse_jobs_place(text: str) -> JobsPlace:
    """Raises InvalidQuery for what no page ever linked to."""
    try:
        block, *listed = text.split(_BETWEEN)
        return JobsPlace(parse_place(block), _job_place(*listed) if listed else None)
    except (ValueError, TypeError) as exc:
        raise InvalidQuery(f"{quote(text)} is not a place in the list of jobs") from exc


def _job_place(session_text: str, name: str) -> JobPlace:
    session = parse_place(session_text)
    return JobPlace(session.started_at, session.id, from_segment(name) if name else "")


@dataclass(frozen=True)
class CutJobs:
    jobs: tuple[JobOfSession, ...]
    next_place: JobsPlace | None


def cut_page(
    jobs: Iterable[JobOfSession], limit: int, after: JobsPlace | None, block: Sequence[Place], next_block: Place | None
) -> CutJobs:
    """The newest jobs of a block that no page has listed. `block` has the sessions, `next_block` where others begin."""
    left = sorted((job for job in jobs if after is None or after.is_before(job)), key=_place_of, reverse=True)
    if len(left) > limit:
        start = after.block if after else _just_before(block[0])
        return CutJobs(tuple(left[:limit]), JobsPlace(start, left[limit - 1].place))
    return CutJobs(tuple(left), JobsPlace(next_block) if next_block else None)


def _place_of(job: JobOfSession) -> JobPlace:
    return job.place


def _just_before(first: Place) -> Place:
    """Sessions that start while somebody pages are none of the block."""
    return Place(first.started_at + timedelta(microseconds=1), first.id)


async def _polled_summary(
    store: ObjectStore, session: SessionId, ended_at: datetime | None, *, is_over: bool
) -> SessionSummary | None:
    """What is known of the session's jobs without opening it; None where its dashboard never told."""
    newest = ""
    async for stat in store.list(PolledKey.name_prefix(session, polled_name(POLLED))):
        newest = stat.key if parse_polled_key(stat.key) else newest
    try:
        answer = await find_answer(store, newest) if newest else None
        return await asyncio.to_thread(_summary_of, answer, ended_at, is_over=is_over) if answer else None
    except (DamagedAnswer, msgspec.DecodeError):
        return None


def _summary_of(answer: PolledAnswer, ended_at: datetime | None, *, is_over: bool) -> SessionSummary | None:
    """Pure. A session that crashed lived at least until this answer. Raises msgspec.DecodeError for no list of jobs."""
    if answer.status != 200:
        return None
    told: Sequence[dict[str, Any]] = msgspec.json.decode(bytes(answer.body), type=list[dict[str, Any]])
    end = (ended_at or answer.polled_at) if is_over else None
    jobs = newest_first(Job(masked_value(ended_with_cluster(job, end))) for job in rays_jobs(told))
    return SessionSummary(
        version=SUMMARY_VERSION,
        as_of=answer.polled_at,
        jobs=tuple(map(job_summary, jobs[:JOBS_LIMIT])),
        left_out=max(0, len(jobs) - JOBS_LIMIT),
    )


_READ_AT_ONCE = 32
_CHUNK = 64
_OPENED_AT_ONCE = 4  # sessions without a summary that one page has read to their end, in the background
_NUDGE_SECONDS = 0.01

log = Log("raykeeper.history.jobs")


@dataclass(frozen=True)
class JobsRequest:
    """What is asked of the list."""

    limit: int
    after: JobsPlace | None = None
    within: SessionFilter = EVERY_SESSION
    """Which sessions; its text is looked for in the job as well."""
    status: str = ""
    outcomes: Collection[str] = ()
    """Of these alone; empty for any."""
    fingerprint: str = ""
    """Of the root cause."""
    entrypoint: str = ""
    """The same command, or another one of the same script."""
    before: datetime | None = None
    """Started before that."""

    def matches(self, found: JobOfSession) -> bool:
        if self.outcomes and found.job.outcome not in self.outcomes:
            return False
        if self.status not in ("", found.job.status) or not self._is_alike(found.job):
            return False
        if self.before is not None and found.place.started_at >= self.before:
            return False
        if not self.within.text:
            return True
        # By what is shown alone: a filter on what is masked would tell a secret letter by letter.
        start, job = found.entry.start, masked_value(found.job)
        names = (start.namespace, start.cluster, found.entry.owner, job.name, job.entrypoint, job.failure)
        metadata = (f"{name}={value}" for name, value in job.metadata.items())
        return has_words(self.within.text, *names, *metadata)

    def _is_alike(self, job: JobSummary) -> bool:
        if self.fingerprint and (job.headline is None or job.headline.fingerprint != self.fingerprint):
            return False
        return not self.entrypoint or _what_runs(job.entrypoint) == _what_runs(self.entrypoint)


def _what_runs(entrypoint: str) -> str:
    return script_name(entrypoint) or entrypoint[:ENTRYPOINT_CHARS]


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


async def find_jobs(history: History, wanted: JobsRequest) -> FoundJobs:
    """The newest jobs of those wanted, or those next to a place in the list."""
    after = wanted.after
    page = await history.catalog.page(BLOCK, after.block if after else None, _without_text(wanted.within))
    tally, entries = _Tally(), list(page.entries)
    while entries:
        chunk, entries = entries[:_CHUNK], entries[_CHUNK:]
        await _take_in(history, chunk, wanted, tally)
        entries = _worth_reading(entries, tally.jobs, wanted)
    await _nudge(history, tally.to_open)
    cut = cut_page(tally.jobs, wanted.limit, after, [entry.place for entry in page.entries], page.next_place)
    return FoundJobs(cut.jobs, cut.next_place, tally.unread, tally.left_out, page.unreadable)


_ALIKE = 100


async def jobs_with_failure(history: History, namespace: str, fingerprint: str) -> tuple[JobOfSession, ...]:
    """The newest jobs of a namespace with this root cause, among those of its latest sessions."""
    wanted = JobsRequest(_ALIKE, within=SessionFilter(namespace), fingerprint=fingerprint)
    return (await find_jobs(history, wanted)).jobs


async def last_success(
    history: History, namespace: str, entrypoint: str, before: datetime | None
) -> JobOfSession | None:
    """The last job of a namespace that ran the same script and succeeded: one of the very same command, if there is."""
    wanted = JobsRequest(
        _ALIKE, within=SessionFilter(namespace), status="SUCCEEDED", entrypoint=entrypoint, before=before
    )
    found = (await find_jobs(history, wanted)).jobs
    same = (one for one in found if one.job.entrypoint == entrypoint[:ENTRYPOINT_CHARS])
    return next(same, found[0] if found else None)


def _without_text(within: SessionFilter) -> SessionFilter:
    return SessionFilter(within.namespace, within.cluster, within.owner, within.since, within.until)


async def _take_in(history: History, entries: Sequence[CatalogEntry], wanted: JobsRequest, tally: _Tally) -> None:
    """Of all jobs only those are held that a page can still show: sessions may have a thousand each."""
    reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(entry: CatalogEntry) -> bool:
        async with reads:
            known = await jobs_of_session(history, entry)
            summary = known.summary
            tally.unread += summary is None
            if summary is not None:
                tally.left_out += summary.left_out
                found = (JobOfSession(entry, job, known.is_doubtful) for job in summary.jobs)
                tally.jobs += filter(wanted.matches, found)
                if len(tally.jobs) > 2 * wanted.limit + JOBS_LIMIT:
                    tally.jobs = _newest_left(tally.jobs, wanted)
            return known.is_over and entry.summary_written is None

    are_to_open = await asyncio.gather(*map(read, entries))
    tally.jobs = _newest_left(tally.jobs, wanted)
    tally.to_open += (entry for entry, is_to_open in zip(entries, are_to_open, strict=True) if is_to_open)


def _newest_left(jobs: Sequence[JobOfSession], wanted: JobsRequest) -> list[JobOfSession]:
    """Those that the page shows, and one more, by which it knows that there are others."""
    left = (job for job in jobs if wanted.after is None or wanted.after.is_before(job))
    return heapq.nlargest(wanted.limit + 1, left, key=_place_of)


@dataclass(frozen=True)
class KnownJobs:
    """What is known of a session's jobs without opening it."""

    summary: SessionSummary | None
    is_over: bool = True
    """Whether the session is."""
    is_doubtful: bool = False
    """It counts as running, but its head missed a heartbeat."""


async def jobs_of_session(history: History, entry: CatalogEntry) -> KnownJobs:
    if (summary := await history.catalog.summaries.find(entry)) is not None:
        return KnownJobs(summary)
    life = listed_state(entry.end) if entry.end and entry.has_ended else await history.heartbeats.state(entry.id)
    is_over = life.state is not State.RUNNING
    polled = await _polled_summary(history.catalog.store, entry.id, life.ended_at, is_over=is_over)
    return KnownJobs(polled, is_over, life.is_doubtful)


def _worth_reading(
    entries: Iterable[CatalogEntry], jobs: Sequence[JobOfSession], wanted: JobsRequest
) -> list[CatalogEntry]:
    """Those that may have a job for this page: once it is full, none that ended before the last one on it began."""
    if len(jobs) <= wanted.limit:
        return list(entries)
    last = jobs[wanted.limit].place.started_at
    return [entry for entry in entries if not (entry.has_ended and entry.end and entry.end.ended_at < last)]


async def _nudge(history: History, entries: Sequence[CatalogEntry]) -> None:
    """Have some sessions read to their end, which leaves a summary; nobody waits for it here."""
    for entry in entries[:_OPENED_AT_ONCE]:
        try:
            async with asyncio.timeout(_NUDGE_SECONDS):
                await history.sessions.open(entry.id)  # what it began goes on when we stop waiting
        except TimeoutError:
            continue
        except RaykeeperError as exc:
            log.debug("session could not be opened for its jobs", session=str(entry.id), error=str(exc))
