"""The order of all jobs, and how a page of them is cut out. Pure.

Sessions are taken in blocks of `BLOCK` by their start, the newest first, and the jobs of a block are listed by *their*
start. So a page costs a bounded number of reads, no job is listed twice or left out, and among the newest sessions a
job that began just now stands first, however old its cluster is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from raykeeper.history.answers import InvalidQuery
from raykeeper.history.entries import CatalogEntry, Place, parse_place
from raykeeper.layout.keys import SessionId
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.summaries import JobSummary

BLOCK = 500
"""Sessions whose jobs one page looks at: half a second of small reads where nothing is in memory yet."""
_BETWEEN = "!"  # occurs in no encoded name


@dataclass(frozen=True)
class JobOfSession:
    """One job, and the session it ran in."""

    entry: CatalogEntry
    job: JobSummary
    is_session_over: bool = True

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
