"""The summary of a session's jobs, written once it is final, so that lists of jobs need not open it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.entities.job import Job, newest_first
from raykeeper.history.entities.job_list import session_jobs
from raykeeper.history.entities.tasks import IS_USERS
from raykeeper.history.ingest.session import Session
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.report.make import REPORTS_LIMIT, find_report, reports_on_jobs, why_in_one_line
from raykeeper.history.report.model import Cause, Outcome, Report
from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.history.text import cut_at_word
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.summaries import (
    FAILURES_OF_JOB,
    FAILURES_OF_SESSION,
    JOBS_LIMIT,
    TEXT_CHARS,
    FailureSummary,
    HeadlineSummary,
    JobSummary,
    SessionSummary,
)
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

SUMMARY_VERSION = 6
REPORTED_JOBS = 50
"""Of these, jobs whose reports are made: those that failed first."""
ENTRYPOINT_CHARS, _LINE_CHARS, _NAME_CHARS = 500, 300, 200
_METADATA_PAIRS, _METADATA_CHARS = 20, 200

COUNTED_TASKS = f"""
    SELECT job_id, state, sum(number)::BIGINT AS number
    FROM task_summary WHERE {IS_USERS}
    GROUP BY ALL HAVING sum(number) > 0
"""  # noqa: S608 - made of constants


async def summarize(context: SessionContext) -> SessionSummary:
    """What there is to say about the session and its jobs."""
    jobs, report = await job_summaries(context, REPORTED_JOBS), await find_report(context)
    causes = unasked_causes(report)
    named = [job for job in jobs if max(len(job.job_id or ""), len(job.submission_id or "")) <= TEXT_CHARS]
    return SessionSummary(
        version=SUMMARY_VERSION,
        as_of=context.session.as_of,
        outcome=report.outcome.value,
        headline=_headline(report),
        failures=tuple(map(_failure, causes[:FAILURES_OF_SESSION])),
        failures_left_out=max(0, len(causes) - FAILURES_OF_SESSION),
        jobs=tuple(named[:JOBS_LIMIT]),
        left_out=len(jobs) - len(named[:JOBS_LIMIT]),
    )


async def job_summaries(context: SessionContext, reports_limit: int = REPORTS_LIMIT) -> list[JobSummary]:
    """Every job of a session, the newest first; why one failed is the root cause of its report."""
    jobs = newest_first(await session_jobs(context))
    reports = await reports_on_jobs(context, {job.name: job.status for job in jobs}, reports_limit)
    tasks = _tasks_by_job(await context.rows(COUNTED_TASKS))
    unjudged = {name for name, report in reports.items() if report is None}
    return [
        job_summary(job, reports.get(job.name), tasks.get(job.job_id, {}), is_unjudged=job.name in unjudged)
        for job in jobs
    ]


def _tasks_by_job(rows: Sequence[Row]) -> dict[str | None, dict[str, int]]:
    """How many attempts of each job are in which state."""
    counted: dict[str | None, dict[str, int]] = {}
    for row in rows:
        counted.setdefault(row["job_id"], {})[row["state"]] = row["number"]
    return counted


def job_summary(
    job: Job, report: Report | None = None, tasks: Mapping[str, int] | None = None, *, is_unjudged: bool = False
) -> JobSummary:
    """A job in a few words. Without a report, its own message has to do; `is_unjudged` is one that needed a report."""
    failure = why_in_one_line(job.status, job.message, report)
    causes = unasked_causes(report) if report else []
    return JobSummary(
        job_id=job.job_id,
        submission_id=job.submission_id,
        status=job.status,
        started_at=job.started_at,
        ended_at=job.ended_at,
        entrypoint=job.entrypoint[:ENTRYPOINT_CHARS],
        metadata=_metadata(job),
        outcome=report.outcome.value if report else _OUTCOMES.get(job.status, Outcome.RUNNING).value,
        failure=cut_at_word(failure, _LINE_CHARS),
        is_provisional=report is None and (bool(failure) or is_unjudged),
        headline=_headline(report) if report else None,
        failures=tuple(map(_failure, causes[:FAILURES_OF_JOB])),
        failures_left_out=max(0, len(causes) - FAILURES_OF_JOB),
        tasks=dict(sorted((tasks or {}).items())),
    )


_OUTCOMES = {"SUCCEEDED": Outcome.OK, "FAILED": Outcome.FAILED, "STOPPED": Outcome.STOPPED}
"""Of jobs without a report, by Ray's status."""


def unasked_causes(report: Report) -> list[Cause]:
    """What failed: not what the program or its user asked for."""
    return [cause for cause in report.causes if not cause.is_intended]


def _headline(report: Report) -> HeadlineSummary | None:
    told = report.headline
    if told is None:
        return None
    return HeadlineSummary(
        text=cut_at_word(told.text, _LINE_CHARS),
        what=cut_at_word(told.what, _NAME_CHARS),
        where=told.where.text[:_NAME_CHARS] if told.where else "",
        then=cut_at_word(told.then, _LINE_CHARS),
        confidence=told.confidence.value,
        fingerprint=told.fingerprint,
    )


def _failure(cause: Cause) -> FailureSummary:
    return FailureSummary(
        fingerprint=cause.fingerprint,
        title=cut_at_word(cause.error or cause.title, _NAME_CHARS),
        rule=cause.rule,
        what=cut_at_word(cause.who.text, _NAME_CHARS) if cause.who else "",
        where=cause.where.text[:_NAME_CHARS] if cause.where else "",
        count=max(1, cause.failures + cause.deaths + cause.requests),
        is_recovered=bool(cause.failures) and cause.failures == cause.recovered and not cause.deaths,
        first_at=cause.at,
    )


def _metadata(job: Job) -> dict[str, str]:
    pairs = list(job.metadata.items())[:_METADATA_PAIRS]
    return {str(name)[:_METADATA_CHARS]: str(value)[:_METADATA_CHARS] for name, value in pairs}


_REMEMBERED = 10_000
log = Log("raykeeper.history")


class SummaryWriter:
    """Any replica may write a summary, whenever it opens a session that is final: all of them write the same."""

    def __init__(
        self,
        store: ObjectStore,
        ask: Callable[[Session], SessionContext],
        count: Callable[[SessionSummary], object] | None = None,
    ) -> None:
        self._store = store
        self._ask = ask
        self._count = count
        """Called with the first summary of a session."""
        self._written: Bounded[SessionId, datetime] = Bounded(_REMEMBERED)

    async def write(self, session: Session) -> bool:
        """Have the summary of a final session in the catalog; whether it was not there.

        A store that cannot take it now gets it another time.
        """
        if session.record is None or self._written.get(session.id) == session.as_of:
            return False
        key = CatalogKey(session.record.started_at.date(), session.id, "summary").key
        try:
            known = await self._known(key)
            is_new = known is None or (known.version, known.as_of) != (SUMMARY_VERSION, session.as_of)
            if is_new:
                summary = await summarize(self._ask(session))
                await self._store.put(key, encode_record(summary))
                if known is None and self._count is not None:
                    self._count(summary)
                log.info("session summarized", session=str(session.id), jobs=len(summary.jobs))
        except RaykeeperError as exc:
            log.warning("session could not be summarized", session=str(session.id), error=str(exc))
            return False
        self._written.put(session.id, session.as_of)
        return is_new

    async def _known(self, key: str) -> SessionSummary | None:
        try:
            return await find_record(self._store, key, SessionSummary)
        except DamagedRecord:
            return None
