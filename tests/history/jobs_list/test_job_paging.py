"""Pages of jobs list every job once, the newest first, whatever ran how long beside what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.jobs_list.find import (
    CutJobs,
    JobOfSession,
    JobsPlace,
    cut_page,
    parse_jobs_place,
)
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.layout.keys import SessionId
from raykeeper.layout.records import CatalogStart
from raykeeper.layout.summaries import JobSummary

START = datetime(2026, 11, 15, tzinfo=UTC)
Sessions = list[tuple[CatalogEntry, list[JobOfSession]]]


def entry(number: int, minute: int) -> CatalogEntry:
    id_ = SessionId("team", "train", f"session_{number:03d}")
    start = CatalogStart(
        namespace=id_.namespace,
        cluster=id_.cluster,
        session=id_.session,
        started_at=START + timedelta(minutes=minute),
    )
    return CatalogEntry(id_, start, START)


def a_session(number: int, minute: int, job_minutes: list[int | None]) -> tuple[CatalogEntry, list[JobOfSession]]:
    made = entry(number, minute)
    jobs = [
        JobSummary(
            job_id=f"{place:08d}",
            status="SUCCEEDED",
            started_at=None if late is None else START + timedelta(minutes=late),
        )
        for place, late in enumerate(job_minutes)
    ]
    return made, [JobOfSession(made, job) for job in jobs]


def page(sessions: Sessions, limit: int, block: int, after: JobsPlace | None) -> CutJobs:
    """One page as it is found, by the pure steps alone."""
    newest_first = sorted(sessions, key=lambda one: one[0].place, reverse=True)
    ahead = [one for one in newest_first if after is None or one[0].place < after.block]
    places = [entry.place for entry, _ in ahead[:block]]
    jobs = [job for _, jobs in ahead[:block] for job in jobs]
    return cut_page(jobs, limit, after, places, places[-1] if len(ahead) > block else None)


def all_pages(sessions: Sessions, limit: int, block: int) -> list[JobOfSession]:
    found, after = list[JobOfSession](), None
    for _ in range(1000):
        cut = page(sessions, limit, block, after)
        assert len(cut.jobs) <= limit
        found += cut.jobs
        if cut.next_place is None:
            return found
        after = parse_jobs_place(str(cut.next_place))
    raise AssertionError("the pages never end")


minutes = st.integers(0, 60)
sessions_of_jobs = st.lists(st.tuples(minutes, st.lists(st.none() | minutes, max_size=6)), max_size=12)


@settings(deadline=None)
@given(sessions_of_jobs, st.integers(1, 7), st.integers(1, 14))
def test_every_job_is_listed_once(made: list[tuple[int, list[int | None]]], limit: int, block: int) -> None:
    sessions = [a_session(number, *one) for number, one in enumerate(made)]
    listed = all_pages(sessions, limit, block)
    expected = [job.place for _, jobs in sessions for job in jobs]
    assert sorted(job.place for job in listed) == sorted(expected)


@settings(deadline=None)  # a busy machine is no failure
@given(sessions_of_jobs, st.integers(1, 7))
def test_the_newest_come_first_among_the_sessions_of_a_block(
    made: list[tuple[int, list[int | None]]], limit: int
) -> None:
    sessions = [a_session(number, *one) for number, one in enumerate(made)]
    places = [job.place for job in all_pages(sessions, limit, block=len(sessions) + 1)]
    assert places == sorted(places, reverse=True)


def test_a_new_job_of_an_old_session_stands_before_an_old_job_of_a_new_one() -> None:
    sessions = [a_session(0, 0, [1, 50]), a_session(1, 20, [21])]
    listed = all_pages(sessions, 10, 10)
    assert [job.place.started_at.minute for job in listed] == [50, 21, 1]


def test_a_session_that_starts_while_somebody_pages_moves_nothing() -> None:
    sessions = [a_session(0, 0, [1, 2]), a_session(1, 20, [21, 22])]
    first = page(sessions, 1, 2, None)
    sessions.append(a_session(2, 30, [31]))
    second = page(sessions, 10, 2, first.next_place)
    assert [job.place.started_at.minute for job in second.jobs] == [21, 2, 1]


@pytest.mark.parametrize("text", ["", "x", "a!b", "a!b!c", "2026-11-15~a~b~c!2026-11-15~a~b~c", "2026-11-15~a~b~c!x!y"])
def test_a_place_nobody_linked_to_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_jobs_place(text)
