"""Kinds of failure over many runs: what has the same fingerprint, and whether it is new, came back or is gone. Pure.

Runs of the same script in one namespace follow each other: a kind is gone where the last of them did not have it, and
came back where an earlier one did not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from raykeeper.history.entities.job import script_name
from raykeeper.history.report.model import Outcome
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import FailureSummary, SessionSummary

DAYS = 14
"""Of which the runs are told day by day."""
NEW_FOR = timedelta(days=1)
BACK_FOR = timedelta(days=7)
"""How long a kind counts as new, or as come back."""
RUNS_KEPT, CLUSTERS_KEPT = 50, 50
"""The newest runs and the first clusters of a kind that are named; all are counted."""
_WENT_WELL = (Outcome.OK, Outcome.WITH_FAILURES)


class FailureState(StrEnum):
    NEW = "new"
    """First seen in the last day."""
    REGRESSED = "regressed"
    """It was gone, and is back since less than a week."""
    ONGOING = "ongoing"
    GONE = "gone"
    """The last run of every script that had it went without it."""


@dataclass(frozen=True)
class Run:
    """One job; or what failed in a session outside of any job."""

    session: SessionId
    job: str
    """Empty for the session itself."""
    at: datetime
    line: str
    """What it is one more run of: the same script in the same namespace."""
    failures: tuple[FailureSummary, ...] = ()
    is_judged: bool = True
    """A report was made of it, so that a failure that is not in it was not there."""


@dataclass(frozen=True)
class SeenRun:
    """One run that had a kind of failure."""

    session: SessionId
    job: str
    at: datetime


@dataclass(frozen=True)
class FailureKind:
    """All that is known of one fingerprint."""

    fingerprint: str
    title: str
    """The words of its last occurrence."""
    rule: str
    what: str
    where: str
    state: FailureState
    first_at: datetime
    last_at: datetime
    runs: int
    count: int
    """Attempts, processes and requests that failed of it."""
    is_recovered: bool
    """A retry made all of it good, every time."""
    clusters: tuple[str, ...]
    """`<namespace>/<cluster>`, some of them where they are many."""
    cluster_count: int
    days: tuple[int, ...]
    """Runs that had it, for each of the last days; the last is today."""
    newest: tuple[SeenRun, ...]
    """The last runs that had it, the newest first."""


def runs_of(session: SessionId, started_at: datetime, summary: SessionSummary) -> Iterator[Run]:
    """The runs that a summary tells of."""
    in_jobs = set[str]()
    for job in summary.jobs:
        in_jobs |= {failure.fingerprint for failure in job.failures}
        yield Run(
            session,
            job.name,
            job.started_at or started_at,
            f"{session.namespace} {script_name(job.entrypoint) or job.entrypoint}",
            job.failures,
            is_judged=bool(job.failures) or (job.outcome in _WENT_WELL and not job.is_provisional),
        )
    outside = tuple(failure for failure in summary.failures if failure.fingerprint not in in_jobs)
    # What is not told of a session that failed may be anything, as may what its summary had no room for.
    is_told = summary.outcome in _WENT_WELL or bool(summary.failures)
    is_judged = bool(outside) or (is_told and not summary.failures_left_out)
    if outside or is_judged:
        yield Run(session, "", started_at, f"{session.namespace}/{session.cluster}", outside, is_judged=is_judged)


def kinds_of(runs: Iterable[Run], now: datetime) -> list[FailureKind]:
    """Every kind that one of the runs had, the last seen first."""
    lines: defaultdict[str, list[Run]] = defaultdict(list)
    seen: defaultdict[str, list[tuple[Run, FailureSummary]]] = defaultdict(list)
    for run in runs:
        if run.is_judged:
            lines[run.line].append(run)
        for failure in {failure.fingerprint: failure for failure in run.failures}.values():
            seen[failure.fingerprint].append((run, failure))
    streaks = _streaks(lines.values())
    found = [_kind(fingerprint, told, streaks[fingerprint], now) for fingerprint, told in seen.items()]
    return sorted(found, key=lambda kind: (kind.last_at, kind.fingerprint), reverse=True)


@dataclass
class _Streaks:
    """How a kind came and went in all the lines that had it."""

    is_present: bool = False
    """The last run of some line had it."""
    back_at: datetime | None = None
    """Since when a line has it again that had lost it; None where none has."""
    _last: dict[int, tuple[int, int, datetime]] = field(default_factory=dict)
    """By line: the place of the last run that had it, the number of its streaks, and when the last of them began."""

    def note(self, line: int, place: int, at: datetime) -> None:
        last, number, began = self._last.get(line, (-1, 0, at))
        goes_on = number > 0 and place <= last + 1
        self._last[line] = (place, number, began) if goes_on else (place, number + 1, at)

    def close(self, lengths: Sequence[int]) -> None:
        for line, (place, number, began) in self._last.items():
            if place == lengths[line] - 1:
                self.is_present = True
                if number > 1 and (self.back_at is None or began > self.back_at):
                    self.back_at = began


def _streaks(lines: Iterable[list[Run]]) -> defaultdict[str, _Streaks]:
    streaks: defaultdict[str, _Streaks] = defaultdict(_Streaks)
    lengths = list[int]()
    for number, line in enumerate(lines):
        line.sort(key=lambda run: (run.at, run.session, run.job))
        lengths.append(len(line))
        for place, run in enumerate(line):
            for failure in run.failures:
                streaks[failure.fingerprint].note(number, place, run.at)
    for one in streaks.values():
        one.close(lengths)
    return streaks


def _kind(fingerprint: str, told: list[tuple[Run, FailureSummary]], streaks: _Streaks, now: datetime) -> FailureKind:
    told.sort(key=lambda one: (one[0].at, one[0].session, one[0].job))
    times = [failure.first_at or run.at for run, failure in told]
    first_at, last_at = min(times), max(times)
    last = told[-1][1]
    clusters = {f"{one.session.namespace}/{one.session.cluster}": None for one, _ in told}
    return FailureKind(
        fingerprint=fingerprint,
        title=last.title,
        rule=last.rule,
        what=last.what,
        where=last.where,
        state=_state(streaks, first_at, now),
        first_at=first_at,
        last_at=last_at,
        runs=len(told),
        count=sum(failure.count for _, failure in told),
        is_recovered=all(failure.is_recovered for _, failure in told),
        clusters=tuple(sorted(clusters))[:CLUSTERS_KEPT],
        cluster_count=len(clusters),
        days=_days(times, now),
        newest=tuple(SeenRun(one.session, one.job, one.at) for one, _ in reversed(told[-RUNS_KEPT:])),
    )


def _state(streaks: _Streaks, first_at: datetime, now: datetime) -> FailureState:
    if not streaks.is_present:
        return FailureState.GONE
    if streaks.back_at is not None and now - streaks.back_at < BACK_FOR:
        return FailureState.REGRESSED
    return FailureState.NEW if now - first_at < NEW_FOR else FailureState.ONGOING


def _days(times: Iterable[datetime], now: datetime) -> tuple[int, ...]:
    """The last 24 hours are the last day; what a clock has in the future is now."""
    days = [0] * DAYS
    for time in times:
        age = max(0, (now - time).days)
        if age < DAYS:
            days[DAYS - 1 - age] += 1
    return tuple(days)
