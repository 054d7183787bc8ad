"""`.summary.json` in the catalog: what lists of jobs and of failures show of a session that was read to its end.
Pure data.

Whoever may write into the bucket decides what is read here, and lists hold thousands of these in memory: so every list
and every text has a bound, and what is beyond one is no summary.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from raykeeper.layout.records import MIB, Count, Record

JOBS_LIMIT = 1000
"""Jobs of one session, half a megabyte; a cluster that runs more of them shows the older ones on its own pages."""
FAILURES_OF_JOB, FAILURES_OF_SESSION = 10, 50
"""Kinds of failures that a summary names."""
TEXT_CHARS = 1000
"""Of any text in it; what we write is cut to less."""
_PAIRS = 100  # of metadata, and states of tasks

_Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS)]
_Pairs = msgspec.Meta(max_length=_PAIRS)


class HeadlineSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a person reads first about a job or a session that did not go well."""

    text: _Text
    """The user's own error line in its original words; else what happened, in one sentence."""
    what: _Text = ""
    """To whom it happened: `Ray Data operator Map(parse)`, `actor trainer-2 died in Trainer.step`."""
    where: _Text = ""
    """`train.py:34`, where a line of code is known."""
    then: _Text = ""
    """The next sentence, where there is one."""
    confidence: _Text = ""
    """`confirmed`, `likely` or `possible`."""
    fingerprint: _Text = ""
    """The same for the same failure in other jobs and sessions."""


class FailureSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One cause of failures, as often as it struck. What a program asked for is none."""

    fingerprint: _Text
    """The same for the same failure in other jobs and sessions."""
    title: _Text
    """Its error line in its original words, or one sentence."""
    rule: _Text
    """The kind of cause, by the name of the rule that found it (docs/report.md)."""
    what: _Text = ""
    where: _Text = ""
    """`train.py:34`, where a line of code is known."""
    count: Count = 1
    """Attempts that failed, processes that died and requests that failed of it."""
    is_recovered: bool = False
    """Every attempt that failed of it was made good by a retry."""
    first_at: datetime | None = None


class JobSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One job of the session."""

    job_id: _Text | None = None
    submission_id: _Text | None = None
    status: _Text
    """In Ray's words."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    entrypoint: _Text = ""
    metadata: Annotated[dict[_Text, _Text], _Pairs] = msgspec.field(default_factory=dict)
    """As its user gave it."""
    outcome: _Text = ""
    """That of its report, or by its status where nothing failed in it: `ok`, `failed`, `with failures`, `stopped`,
    `running` or `running with failures`. A job that Ray calls SUCCEEDED may be `with failures`."""
    failure: _Text = ""
    """Why it failed, in one line."""
    is_provisional: bool = False
    """Its report was not made, though something in it failed or may have: the outcome is by its status alone, and the
    line is the job's own message."""
    headline: HeadlineSummary | None = None
    """That of its report; None where nothing failed, or its report was not made."""
    failures: Annotated[tuple[FailureSummary, ...], msgspec.Meta(max_length=FAILURES_OF_JOB)] = ()
    """What failed in it: the first is the root cause."""
    failures_left_out: Count = 0
    """More kinds of failures, beyond what a summary holds."""
    tasks: Annotated[dict[_Text, Count], _Pairs] = msgspec.field(default_factory=dict)
    """Attempts by their state."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.submission_id or self.job_id or ""


class SessionSummary(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A session and all its jobs."""

    limit_bytes: ClassVar[int] = 8 * MIB
    """A thousand jobs with all that one may have."""
    version: int
    """Of the rules by which it was made; another version is made anew."""
    as_of: datetime
    """What was stored later is not in it."""
    outcome: _Text = ""
    """Of the whole session, in the words of a job's."""
    headline: HeadlineSummary | None = None
    """Of the whole session: also of one without jobs, such as a RayService's."""
    failures: Annotated[tuple[FailureSummary, ...], msgspec.Meta(max_length=FAILURES_OF_SESSION)] = ()
    """What failed in all of it: the first is the root cause."""
    failures_left_out: Count = 0
    jobs: Annotated[tuple[JobSummary, ...], msgspec.Meta(max_length=JOBS_LIMIT)] = ()
    """The newest first."""
    left_out: Count = 0
    """Older jobs, beyond what a summary holds."""
