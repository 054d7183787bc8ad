"""Finds jobs that failed: in sessions that run or are over, and RayJobs that never had one. A look has bounded work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from raykeeper.errors import RaykeeperError
from raykeeper.history.bounded import Bounded
from raykeeper.history.entities.job import Job, JobUnknown
from raykeeper.history.entities.job_list import session_jobs
from raykeeper.history.jobs_list.find import jobs_of_session
from raykeeper.history.jobs_list.summary import job_summary
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.report.make import find_report
from raykeeper.history.report.model import Confidence, Report
from raykeeper.history.report.unstarted import NO_SESSION, report_on_rayjob
from raykeeper.history.store.catalog_entries import CatalogEntry
from raykeeper.history.store.kube_facts import names_in
from raykeeper.history.store.rayjobs import RayJobReader
from raykeeper.history.urls import job_path, rayjob_path
from raykeeper.layout.alerts import rayjob_alerts_prefix, session_alerts_prefix
from raykeeper.layout.keys import RAYJOBS_PREFIX, RayJobId, SessionId, parse_rayjob_key
from raykeeper.layout.rayjobs import FAILED, RayJobRecord
from raykeeper.layout.summaries import JobSummary
from raykeeper.logs import Log
from raykeeper.times import EPOCH

MOST_SESSIONS = 20_000
"""The newest; one that is older and still runs is not looked at."""
MOST_RAYJOBS = 20_000
SESSIONS_A_LOOK = 50
"""Known ones that run, and as many that were never looked at: some 300 small requests."""
OPEN_SECONDS = 20.0
"""For a session that must be read; it goes on being read behind that, and the next look finds it."""
_PAGE = 5000
_REMEMBERED = 50_000

log = Log("raykeeper.history.alerts")


@dataclass(frozen=True)
class FailedJob:
    """One job that did not go well, as far as it is known."""

    namespace: str
    cluster: str
    """Empty for a RayJob that never had one."""
    session: str
    prefix: str
    """Of its alerts' marks in the store."""
    path: str
    """Of its page."""
    job: JobSummary
    ended_at: datetime
    is_cause_known: bool


IsDone = Callable[[str, str], bool]
"""Whether all is said about the job of that name, whose marks are below that prefix."""


class FailedJobs:
    """Looks for jobs that ended after a time. Sessions of which all is known are not looked at again."""

    def __init__(self, history: History, is_done: IsDone) -> None:
        self._history = history
        self._is_done = is_done
        self._reader = RayJobReader(history.catalog.store)
        self._looked_at: Bounded[SessionId, int] = Bounded(_REMEMBERED)
        """In which look each was looked at last."""
        self._settled: Bounded[SessionId, datetime | None] = Bounded(_REMEMBERED)
        """With the time of the summary that was read."""
        self._rayjobs: Bounded[str, datetime] = Bounded(_REMEMBERED)
        """Keys of RayJobs' records that say nothing to us, with their times."""
        self._look = 0

    async def find(self, outcomes: Sequence[str], cutoff: datetime) -> AsyncIterator[FailedJob]:
        """Those that ended after `cutoff`. Raises what the store raises; one bad session costs no other."""
        self._look += 1
        for entry in await self._next_sessions(cutoff):
            self._looked_at.put(entry.id, self._look)
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    found = await self._of_session(entry, outcomes, cutoff)
            except TimeoutError:
                continue
            except (RaykeeperError, JobUnknown) as exc:
                log.warning("session could not be read for its alerts", session=str(entry.id), cause=str(exc))
                continue
            for job in found:
                yield job
        if "failed" in outcomes:
            async for job in self._of_rayjobs(cutoff):
                yield job

    async def _next_sessions(self, cutoff: datetime) -> list[CatalogEntry]:
        """Those that may have something new: some that were never looked at, and those that were longest ago."""
        known, unknown, after, seen = list[CatalogEntry](), list[CatalogEntry](), None, 0
        while seen < MOST_SESSIONS:
            page = await self._history.catalog.page(_PAGE, after)
            for entry in page.entries:
                if _may_have_news(entry, cutoff) and not self._is_settled(entry):
                    (unknown if self._looked_at.get(entry.id) is None else known).append(entry)
            seen += len(page.entries)
            after = page.next_place
            if after is None:
                break
        known.sort(key=lambda entry: self._looked_at.get(entry.id) or 0)
        return unknown[:SESSIONS_A_LOOK] + known[:SESSIONS_A_LOOK]

    def _is_settled(self, entry: CatalogEntry) -> bool:
        return entry.id in self._settled and self._settled.get(entry.id) == entry.summary_written

    async def _of_session(self, entry: CatalogEntry, outcomes: Sequence[str], cutoff: datetime) -> list[FailedJob]:
        if entry.summary_written is None and await self._ended_before(entry, cutoff):
            self._settled.put(entry.id, None)
            return []
        known = await jobs_of_session(self._history, entry)
        summary, is_over = known.summary, known.is_over
        jobs = [job for job in summary.jobs if self._is_wanted(entry.id, job, outcomes, cutoff)] if summary else []
        if summary is not None and entry.summary_written is not None:
            if not jobs:
                self._settled.put(entry.id, entry.summary_written)
            return [_of(entry.id, job, is_cause_known=not job.is_provisional) for job in jobs]
        if not is_over and not jobs:
            return []
        context = await self._history.open(entry.id)
        opened = [(job, job_summary(job)) for job in await session_jobs(context)]
        wanted = [job for job, plain in opened if self._is_wanted(entry.id, plain, outcomes, cutoff)]
        if is_over and not wanted and context.session.is_final:
            self._settled.put(entry.id, None)
        return [await _reported(context, job) for job in wanted]

    async def _ended_before(self, entry: CatalogEntry, cutoff: datetime) -> bool:
        """Whether a session that nobody has read was over by then: it need not be read for this."""
        if entry.has_ended:
            return False  # after the cutoff, or it would not be here
        life = await self._history.heartbeats.state(entry.id)
        return life.ended_at is not None and life.ended_at < cutoff

    def _is_wanted(self, session: SessionId, job: JobSummary, outcomes: Sequence[str], cutoff: datetime) -> bool:
        is_late = job.ended_at is not None and job.ended_at >= cutoff
        is_wanted = job.outcome in outcomes and is_late and bool(job.name)
        return is_wanted and not self._is_done(session_alerts_prefix(session), job.name)

    async def _of_rayjobs(self, cutoff: datetime) -> AsyncIterator[FailedJob]:
        """RayJobs that failed and whose last cluster has no session, if there was one."""
        store, seen = self._history.catalog.store, 0
        for namespace in await names_in(store, RAYJOBS_PREFIX):
            async for stat in store.list(RayJobId.namespace_prefix(namespace)):
                seen += 1
                if seen > MOST_RAYJOBS:
                    return
                id_ = parse_rayjob_key(stat.key)
                if id_ is None or stat.modified < cutoff or self._rayjobs.get(stat.key) == stat.modified:
                    continue
                for record in await self._reader.read([id_]):
                    found = await self._of_rayjob(id_, record)
                    if isinstance(found, FailedJob):
                        yield found
                    elif found is None:
                        self._rayjobs.put(stat.key, stat.modified)

    async def _of_rayjob(self, id_: RayJobId, record: RayJobRecord) -> FailedJob | Later | None:
        """None: there is nothing to say of it."""
        last, prefix = record.last, rayjob_alerts_prefix(id_)
        if last is None or last.deployment_status != FAILED or self._is_done(prefix, record.name):
            return None
        catalog, cluster = self._history.catalog, record.clusters[-1] if record.clusters else ""
        session = await catalog.newest_of_cluster(record.namespace, cluster) if cluster else None
        if session is not None:
            entry = await catalog.find(session)
            if entry is None or entry.summary_written is None:
                return Later()
            summary = await catalog.summaries.find(entry)
            if summary is None or any(job.submission_id in record.job_ids for job in summary.jobs):
                return None  # its job is one of that session
            report = await find_report(await self._history.open(session), record.name)
        else:
            report = await report_on_rayjob(catalog.store, record)
        job = Job({"submission_id": record.name, "status": "FAILED", "message": last.message})
        return FailedJob(
            namespace=record.namespace,
            cluster=cluster,
            session=session.session if session else NO_SESSION,
            prefix=prefix,
            path=rayjob_path(record.namespace, record.name),
            job=job_summary(job, report),
            ended_at=last.ended_at or last.at,
            is_cause_known=report.root_cause is not None,
        )


class Later:
    """It is not known yet whether the job is one of a session."""


def _may_have_news(entry: CatalogEntry, cutoff: datetime) -> bool:
    if entry.summary_written is not None and entry.summary_written < cutoff:
        return False
    return not (entry.has_ended and entry.end is not None and entry.end.ended_at < cutoff)


def _of(session: SessionId, job: JobSummary, *, is_cause_known: bool) -> FailedJob:
    return FailedJob(
        namespace=session.namespace,
        cluster=session.cluster,
        session=session.session,
        prefix=session_alerts_prefix(session),
        path=job_path(session, job.name),
        job=job,
        ended_at=job.ended_at or EPOCH,  # only those that ended are found
        is_cause_known=is_cause_known,
    )


async def _reported(context: SessionContext, job: Job) -> FailedJob:
    report = await find_report(context, job.name)
    is_known = context.session.is_final or _is_confirmed(report)
    return _of(context.session.id, job_summary(job, report), is_cause_known=is_known)


def _is_confirmed(report: Report) -> bool:
    return report.root_cause is not None and report.root_cause.confidence is Confidence.CONFIRMED
