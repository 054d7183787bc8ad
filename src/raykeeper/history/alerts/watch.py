"""The loop: finds jobs that failed, decides what is due, claims it, sends it, and writes down that it was sent."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple
from datetime import datetime, timedelta

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.alert_receivers import AlertSettings, Receiver
from raykeeper.history.alerts.due import NO_MARKS, Marks, Step, claim_seconds, plan_alert
from raykeeper.history.alerts.failed_jobs import FailedJob, FailedJobs
from raykeeper.history.alerts.marks import AlertMarks
from raykeeper.history.alerts.metrics import AlertMetrics
from raykeeper.history.alerts.model import VERSION, Alert, AlertCause, AlertJob, SeenBefore
from raykeeper.history.alerts.sender import Sender
from raykeeper.history.bounded import Bounded
from raykeeper.history.jobs_list.find import jobs_with_failure
from raykeeper.history.query.history import History
from raykeeper.history.store.heartbeats import StoreClock
from raykeeper.layout.alerts import AlertKey
from raykeeper.logs import Log
from raykeeper.masking import masked_value

_REMEMBERED = 100_000
_MARGIN_SECONDS = 0.5
_NOTE_SECONDS = 5.0  # for the store to take a note
_NOTED_FOR = timedelta(days=1)  # that an alert was given up is found out for so long after it is too old
_SENT_AT_ONCE = 4

log = Log("raykeeper.history.alerts")


class AlertWatch:
    """Tells all receivers of all jobs that failed. Any number of servers may do so at once."""

    def __init__(self, history: History, settings: AlertSettings) -> None:
        self._history = history
        self._settings = settings
        self._clock = history.clock
        store = history.catalog.store
        self._store_clock = StoreClock(store, self._clock)
        self._marks = AlertMarks(store, self._clock)
        self._sender = Sender(settings.timing, self._clock)
        self._metrics, self._causes = AlertMetrics(history.metrics.registry), history.metrics.causes
        self._jobs = FailedJobs(history, self._is_done)
        self._since: dict[str, datetime] = {}
        self._over: Bounded[AlertKey, bool] = Bounded(_REMEMBERED)
        """Alerts about which nothing is left to do, so that the store is not asked again."""
        self._sending: set[asyncio.Task[None]] = set()
        self._unnoted: dict[AlertKey, None] = {}
        """Alerts that were sent while the store did not take the note of it."""

    async def run(self) -> None:
        """Look again and again, until it is cancelled. The first look also says since when receivers are told."""
        while True:
            try:
                await self.look()
            except RaykeeperError as exc:
                log.warning("look for failed jobs failed", cause=str(exc))
            except Exception:  # a loop's top: the next look may go well
                log.exception("look for failed jobs failed by a bug")
            await asyncio.sleep(self._settings.timing.look_seconds)

    async def look(self) -> None:
        """One look at what failed. Raises what the store raises."""
        for receiver in self._settings.receivers:
            if receiver.name not in self._since:
                self._since[receiver.name] = await self._marks.since(receiver.name)
        for alert in list(self._unnoted):
            await self._note_sent(alert)
        now = await self._store_clock.now()
        oldest = now - timedelta(seconds=self._settings.timing.max_age_seconds) - _NOTED_FOR
        outcomes = sorted({outcome for one in self._settings.receivers for outcome in one.outcomes})
        turns, tasks = asyncio.Semaphore(_SENT_AT_ONCE), set[asyncio.Task[None]]()

        async def tell(job: FailedJob) -> None:
            async with turns:
                try:
                    await self._tell_all(job)
                except RaykeeperError as exc:  # trouble of one job is no other's
                    log.warning("failed job could not be looked after", job=job.job.name, cause=str(exc))

        try:
            async for job in self._jobs.find(outcomes, max(oldest, min(self._since.values()))):
                tasks.add(asyncio.create_task(tell(job)))
            for done in asyncio.as_completed(tasks):
                await done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _is_done(self, prefix: str, job: str) -> bool:
        return all(AlertKey(prefix, one.name, job) in self._over for one in self._settings.receivers)

    async def _tell_all(self, job: FailedJob) -> None:
        marks = await self._marks.read(job.prefix)
        for receiver in self._settings.receivers:
            key = AlertKey(job.prefix, receiver.name, job.job.name)
            if key in self._over or key in self._unnoted:
                continue
            if not _wants(receiver, job):
                self._over.put(key, True)
                continue
            try:
                await self._tell(receiver, job, key, marks.get(key, NO_MARKS))
            except Unavailable as exc:  # of the store: other receivers may have better luck
                log.warning("alert could not be claimed", receiver=receiver.name, cause=str(exc))

    async def _tell(self, receiver: Receiver, job: FailedJob, key: AlertKey, marks: Marks) -> None:
        timing = self._settings.timing
        due = plan_alert(
            job.ended_at,
            is_cause_known=job.is_cause_known,
            marks=marks,
            since=self._since[receiver.name],
            now=await self._store_clock.now(),
            timing=timing,
        )
        if due.step is Step.NOTHING:
            self._over.put(key, True)
        elif due.step is Step.GIVE_UP:
            await self._give_up(receiver, job, key)
        elif due.step is Step.SEND and (not due.is_provisional or receiver.wants_cause(_rule(job))):
            alert = await self._alert(receiver, job, key, is_provisional=due.is_provisional)
            claimed_at = self._clock.steady()
            if not await self._marks.claim(key, due.attempt):
                return
            lasts = claim_seconds(due.attempt, timing) - timing.timeout_seconds - _MARGIN_SECONDS
            if self._clock.steady() - claimed_at < lasts:  # else somebody else may have the next attempt by now
                sending = asyncio.create_task(self._send(receiver, alert, key, due.attempt))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)
                await asyncio.shield(sending)

    async def finish(self) -> None:
        """Let what is on its way arrive and be noted: a server that is replaced must not leave it to be sent again."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=self._settings.timing.timeout_seconds + _NOTE_SECONDS)

    async def _send(self, receiver: Receiver, alert: Alert, key: AlertKey, attempt: int) -> None:
        try:
            await self._sender.send(alert, receiver)
        except Unavailable as exc:
            self._metrics.failed_attempts.labels(receiver.name).inc()
            log.warning("alert was not taken", receiver=receiver.name, attempt=attempt + 1, cause=exc.cause)
            return
        self._metrics.sent.labels(receiver.name, self._causes.label(alert.cause.kind)).inc()
        self._unnoted[key] = None
        log.info(
            "alert sent", receiver=receiver.name, namespace=alert.namespace, job=alert.job.name, attempt=attempt + 1
        )
        await self._note_sent(key)

    async def _note_sent(self, key: AlertKey) -> None:
        """Until the store has it, this server remembers it; should both fail, the alert is sent again."""
        try:
            await self._marks.note_sent(key)
        except RaykeeperError as exc:
            log.warning("alert sent, but not noted in the store", receiver=key.receiver, cause=str(exc))
            return
        self._over.put(key, True)
        self._unnoted.pop(key, None)

    async def _give_up(self, receiver: Receiver, job: FailedJob, key: AlertKey) -> None:
        if await self._marks.give_up(key):
            self._metrics.given_up.labels(receiver.name).inc()
            log.error("alert given up: it is too old", receiver=receiver.name, job=job.job.name)
        self._over.put(key, True)

    async def _alert(self, receiver: Receiver, job: FailedJob, key: AlertKey, *, is_provisional: bool) -> Alert:
        seen = await self._seen_before(job)
        return alert_of(receiver, job, key, seen, self._settings.link, is_provisional=is_provisional)

    async def _seen_before(self, job: FailedJob) -> SeenBefore:
        """In the same namespace alone: a receiver may be for that namespace."""
        fingerprint = job.job.headline.fingerprint if job.job.headline else ""
        if not fingerprint:
            return SeenBefore(0, None)
        found = await jobs_with_failure(self._history, job.namespace, fingerprint)
        here = (job.namespace, job.cluster, job.session, job.job.name)
        others = [one for one in found if (*astuple(one.entry.id), one.job.name) != here]
        times = [one.place.started_at for one in others]
        return SeenBefore(len(others), max(times, default=None))


def _wants(receiver: Receiver, job: FailedJob) -> bool:
    is_its = receiver.wants_cluster(job.namespace, job.cluster) and job.job.outcome in receiver.outcomes
    return is_its and (not job.is_cause_known or receiver.wants_cause(_rule(job)))


def _rule(job: FailedJob) -> str:
    return job.job.failures[0].rule if job.job.failures else ""


def alert_of(
    receiver: Receiver, job: FailedJob, key: AlertKey, seen: SeenBefore, link: str, *, is_provisional: bool
) -> Alert:
    """What is told. Pure, and masked."""
    told, headline = job.job, job.job.headline
    length = (job.ended_at - told.started_at).total_seconds() if told.started_at else None
    return masked_value(
        Alert(
            version=VERSION,
            id=hashlib.sha256(key.folder.encode()).hexdigest()[:32],
            event="job_failed",
            receiver=receiver.name,
            namespace=job.namespace,
            cluster=job.cluster,
            session=job.session,
            job=AlertJob(
                name=told.name,
                job_id=told.job_id,
                submission_id=told.submission_id,
                entrypoint=told.entrypoint,
                status=told.status,
                outcome=told.outcome,
                started_at=told.started_at,
                ended_at=job.ended_at,
                duration_seconds=max(0.0, length) if length is not None else None,
            ),
            cause=AlertCause(
                headline=headline.text if headline else told.failure or "The cause is not known",
                what=headline.what if headline else "",
                where=headline.where if headline else "",
                then=headline.then if headline else "",
                confidence=headline.confidence if headline else "",
                kind=_rule(job),
                fingerprint=headline.fingerprint if headline else "",
                is_provisional=is_provisional,
            ),
            seen_before=seen,
            link=f"{link}{job.path}" if link else "",
        )
    )


@asynccontextmanager
async def alerting(history: History, settings: AlertSettings) -> AsyncIterator[None]:
    """Tell receivers while the block runs."""
    watch = AlertWatch(history, settings)
    task = asyncio.create_task(watch.run(), name="alerts")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await watch.finish()
