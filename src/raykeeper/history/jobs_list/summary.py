"""The summary of a session's jobs, written once it is final, so that lists of jobs need not open it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.entities.job import Job, newest_first
from raykeeper.history.entities.job_list import session_jobs
from raykeeper.history.entities.tasks import IS_USERS
from raykeeper.history.ingest.session import Session
from raykeeper.history.query.context import Row, SessionContext
from raykeeper.history.report.make import Verdict, verdicts_on_jobs, why_in_one_line
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import decode_record, encode_record
from raykeeper.layout.summaries import JobSummary, SessionSummary
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

SUMMARY_VERSION = 3
JOBS_LIMIT = 1000
"""Jobs of one session, half a megabyte; a cluster that runs more of them shows the older ones on its own pages."""
_ENTRYPOINT_CHARS, _FAILURE_CHARS = 500, 300
_METADATA_PAIRS, _METADATA_CHARS = 20, 200

COUNTED_TASKS = f"""
    SELECT job_id, state, sum(number)::BIGINT AS number
    FROM task_summary WHERE {IS_USERS}
    GROUP BY ALL HAVING sum(number) > 0
"""  # noqa: S608 - made of constants


async def summarize(context: SessionContext) -> SessionSummary:
    """What there is to say about the session's jobs."""
    jobs = await job_summaries(context)
    return SessionSummary(
        version=SUMMARY_VERSION,
        as_of=context.session.as_of,
        jobs=tuple(jobs[:JOBS_LIMIT]),
        left_out=max(0, len(jobs) - JOBS_LIMIT),
    )


async def job_summaries(context: SessionContext) -> list[JobSummary]:
    """Every job of a session, the newest first; why one failed is the root cause of its report."""
    jobs = newest_first(await session_jobs(context))
    verdicts = await verdicts_on_jobs(context, {job.name: job.status for job in jobs})
    tasks = _tasks_by_job(await context.rows(COUNTED_TASKS))
    return [job_summary(job, verdicts.get(job.name), tasks.get(job.job_id, {})) for job in jobs]


def _tasks_by_job(rows: Sequence[Row]) -> dict[str | None, dict[str, int]]:
    """How many attempts of each job are in which state."""
    counted: dict[str | None, dict[str, int]] = {}
    for row in rows:
        counted.setdefault(row["job_id"], {})[row["state"]] = row["number"]
    return counted


def job_summary(job: Job, verdict: Verdict | None = None, tasks: Mapping[str, int] | None = None) -> JobSummary:
    """A job in a few words. Without a verdict, its own message has to do."""
    failure = why_in_one_line(job.status, job.message, verdict)
    return JobSummary(
        job_id=job.job_id,
        submission_id=job.submission_id,
        status=job.status,
        started_at=job.started_at,
        ended_at=job.ended_at,
        entrypoint=job.entrypoint[:_ENTRYPOINT_CHARS],
        metadata=_metadata(job),
        outcome=verdict.outcome.value if verdict else "",
        failure=failure[:_FAILURE_CHARS],
        is_provisional=bool(failure) and verdict is None,
        tasks=dict(sorted((tasks or {}).items())),
    )


def _metadata(job: Job) -> dict[str, str]:
    pairs = list(job.metadata.items())[:_METADATA_PAIRS]
    return {str(name)[:_METADATA_CHARS]: str(value)[:_METADATA_CHARS] for name, value in pairs}


_REMEMBERED = 10_000
log = Log("raykeeper.history")


class SummaryWriter:
    """Any replica may write a summary, whenever it opens a session that is final: all of them write the same."""

    def __init__(self, store: ObjectStore, ask: Callable[[Session], SessionContext]) -> None:
        self._store = store
        self._ask = ask
        self._written: Bounded[SessionId, datetime] = Bounded(_REMEMBERED)

    async def write(self, session: Session) -> bool:
        """Have the summary of a final session in the catalog; whether it was not there.

        A store that cannot take it now gets it another time.
        """
        if session.record is None or self._written.get(session.id) == session.as_of:
            return False
        key = CatalogKey(session.record.started_at.date(), session.id, "summary").key
        try:
            is_new = not await self._is_there(key, session.as_of)
            if is_new:
                summary = await summarize(self._ask(session))
                await self._store.put(key, encode_record(summary))
                log.info("session summarized", session=str(session.id), jobs=len(summary.jobs))
        except RaykeeperError as exc:
            log.warning("session could not be summarized", session=str(session.id), error=str(exc))
            return False
        self._written.put(session.id, session.as_of)
        return is_new

    async def _is_there(self, key: str, as_of: datetime) -> bool:
        data = await self._store.find(key)
        try:
            known = decode_record(data, SessionSummary) if data else None
        except msgspec.DecodeError:
            return False
        return known is not None and (known.version, known.as_of) == (SUMMARY_VERSION, as_of)
