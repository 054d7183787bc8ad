"""Kinds of failure over many runs: since when, how often, where, and whether one is new, came back or is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.history.failures.kinds import (
    DAYS,
    RUNS_KEPT,
    FailureKind,
    FailureState,
    Run,
    kinds_of,
    runs_of,
)
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import FailureSummary, JobSummary, SessionSummary

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_failure(fingerprint: str = "f1", **more: object) -> FailureSummary:
    facts = {"fingerprint": fingerprint, "title": f"Error {fingerprint}", "rule": "raised_exception", **more}
    return FailureSummary(**facts)  # type: ignore[arg-type]


def a_run(hours_ago: float, *fingerprints: str, line: str = "a main.py", cluster: str = "train") -> Run:
    at = NOW - hours_ago * HOUR
    session = SessionId("a", cluster, f"session_{hours_ago}")
    return Run(session, "job", at, line, tuple(a_failure(one) for one in fingerprints))


def state_of(*runs: Run) -> str:
    [kind] = [kind for kind in kinds_of(runs, NOW) if kind.fingerprint == "f1"]
    return kind.state.value


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        ([a_run(1, "f1")], "new"),
        ([a_run(30, "f1"), a_run(1, "f1")], "ongoing"),
        ([a_run(30, "f1"), a_run(1)], "gone"),
        ([a_run(1, "f1"), a_run(0.5)], "gone"),
        ([a_run(30, "f1"), a_run(20), a_run(1, "f1")], "regressed"),
        ([a_run(9 * 24, "f1"), a_run(8.5 * 24), a_run(8 * 24, "f1"), a_run(1, "f1")], "ongoing"),
        ([a_run(30, "f1"), a_run(20, line="a other.py"), a_run(1, "f1")], "ongoing"),
        ([a_run(30, "f1"), a_run(1), a_run(2, "f1", line="b main.py")], "ongoing"),
        ([a_run(1, "f1"), a_run(0.5, "f2")], "gone"),
    ],
    ids=[
        "first seen today",
        "seen in every run",
        "the last run went without",
        "gone on its first day",
        "gone and back",
        "back for longer than a week",
        "another script says nothing about it",
        "gone in one script and not in another",
        "another failure is no sign of it",
    ],
)
def test_a_kind_is_new_ongoing_gone_or_back(runs: list[Run], state: str) -> None:
    assert state_of(*runs) == state
    assert state_of(*reversed(runs)) == state, "whatever the order in which sessions are read"


def test_a_run_without_a_report_is_no_sign_that_a_failure_is_gone() -> None:
    session = SessionId("a", "train", "session_9")
    jobs = (
        JobSummary(status="FAILED", outcome="failed", failure="?", is_provisional=True, entrypoint="python main.py"),
    )
    unjudged = list(runs_of(session, NOW, SessionSummary(version=4, as_of=NOW, jobs=jobs)))
    assert [run.is_judged for run in unjudged] == [False]
    assert state_of(a_run(30, "f1"), *unjudged) == "ongoing"


def a_session_run(hours_ago: float, *outside: str, outcome: str = "failed", **more: Any) -> list[Run]:
    """A session of one job that went well, in which something failed outside of it."""
    at, jobs = NOW - hours_ago * HOUR, (JobSummary(submission_id="j", status="SUCCEEDED", outcome="ok"),)
    facts = {"outcome": outcome, "failures": tuple(map(a_failure, outside)), "jobs": jobs, **more}
    return list(runs_of(SessionId("a", "serve", f"s{hours_ago}"), at, SessionSummary(version=6, as_of=at, **facts)))


@pytest.mark.parametrize(
    ("later", "state"),
    [
        (a_session_run(1, outcome="ok"), "gone"),
        (a_session_run(1, "f2"), "gone"),
        (a_session_run(1, "f3", jobs=(JobSummary(status="FAILED", failures=(a_failure("f3"),)),)), "gone"),
        (a_session_run(1, "f1"), "ongoing"),
        (a_session_run(1, outcome="failed"), "ongoing"),
        (a_session_run(1, outcome="ok", failures_left_out=3), "ongoing"),
    ],
    ids=["went well", "another one", "a job failed", "still there", "nobody knows why", "not all are named"],
)
def test_what_failed_outside_of_jobs_is_gone_once_a_session_went_without_it(later: list[Run], state: str) -> None:
    assert state_of(*a_session_run(30, "f1"), *later) == state


def test_a_job_whose_report_was_not_made_is_no_sign_either() -> None:
    jobs = (JobSummary(status="SUCCEEDED", outcome="ok", is_provisional=True, entrypoint="python main.py"),)
    unjudged = list(runs_of(SessionId("a", "train", "s9"), NOW, SessionSummary(version=6, as_of=NOW, jobs=jobs)))
    assert state_of(a_run(30, "f1"), *unjudged) == "ongoing"


def test_a_kind_tells_first_and_last_runs_clusters_and_days() -> None:
    runs = [a_run(50, "f1"), a_run(26, "f1", cluster="serve"), a_run(25, "f1"), a_run(1, "f1")]
    [kind] = kinds_of(runs, NOW)
    assert (kind.first_at, kind.last_at, kind.runs) == (NOW - 50 * HOUR, NOW - HOUR, 4)
    assert (kind.clusters, kind.cluster_count) == (("a/serve", "a/train"), 2)
    assert kind.days == (0,) * (DAYS - 3) + (1, 2, 1)
    assert [seen.at for seen in kind.newest] == [NOW - hours * HOUR for hours in (1, 25, 26, 50)]


def test_words_are_those_of_the_last_occurrence_and_counts_are_added_up() -> None:
    old = Run(SessionId("a", "c", "s1"), "j", NOW - 9 * HOUR, "x", (a_failure(title="part-3 is gone", count=3),))
    new = Run(
        SessionId("a", "c", "s2"), "j", NOW, "x", (a_failure(title="part-5 is gone", count=4, is_recovered=True),)
    )
    [kind] = kinds_of([new, old], NOW)
    assert (kind.title, kind.count, kind.is_recovered) == ("part-5 is gone", 7, False)


def test_what_failed_outside_of_every_job_belongs_to_the_session() -> None:
    session = SessionId("a", "serve", "session_1")
    job = JobSummary(submission_id="j", status="SUCCEEDED", outcome="ok", failures=(a_failure("f1"),))
    summary = SessionSummary(version=4, as_of=NOW, failures=(a_failure("f1"), a_failure("f2")), jobs=(job,))
    told = {(run.job, failure.fingerprint) for run in runs_of(session, NOW, summary) for failure in run.failures}
    assert told == {("j", "f1"), ("", "f2")}


def test_a_kind_of_very_many_runs_names_the_newest() -> None:
    [kind] = kinds_of([a_run(hours, "f1", cluster=f"c{hours}") for hours in range(200)], NOW)
    assert (kind.runs, len(kind.newest), kind.newest[0].at) == (200, RUNS_KEPT, NOW)
    assert (kind.cluster_count, len(kind.clusters)) == (200, 50)


runs = st.lists(
    st.builds(
        a_run,
        st.integers(0, 600).map(float),
        st.sampled_from(["f1", "f2", "f3"]),
        st.sampled_from(["f1", "f4"]),
        line=st.sampled_from(["a x.py", "b y.py"]),
        cluster=st.sampled_from(["train", "serve"]),
    )
    | st.builds(a_run, st.integers(0, 600).map(float), line=st.sampled_from(["a x.py", "b y.py"])),
    max_size=30,
)


@given(runs)
def test_nothing_is_lost_or_counted_twice_whatever_the_runs_are(given_runs: list[Run]) -> None:
    kinds = kinds_of(given_runs, NOW)
    wanted = {failure.fingerprint for run in given_runs for failure in run.failures}
    assert {kind.fingerprint for kind in kinds} == wanted
    for kind in kinds:
        having = [run for run in given_runs if any(one.fingerprint == kind.fingerprint for one in run.failures)]
        assert kind.runs == len(having) >= sum(kind.days)
        assert kind.first_at <= kind.last_at
        assert kind.days[-1] == sum(NOW - run.at < timedelta(days=1) for run in having)
        if kind.state is FailureState.GONE:
            assert not any(_is_last(run, given_runs) for run in having)
    assert [kind.last_at for kind in kinds] == sorted((kind.last_at for kind in kinds), reverse=True)


def _is_last(run: Run, everything: list[Run]) -> bool:
    return all(other.at < run.at for other in everything if other.line == run.line and other is not run)


@given(runs, st.randoms(use_true_random=False))
def test_the_order_of_reading_changes_nothing(given_runs: list[Run], random: object) -> None:
    shuffled = list(given_runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _told(kinds_of(shuffled, NOW)) == _told(kinds_of(given_runs, NOW))


def _told(kinds: list[FailureKind]) -> list[tuple[object, ...]]:
    return [(kind.fingerprint, kind.runs, kind.first_at, kind.last_at, kind.days, kind.clusters) for kind in kinds]
