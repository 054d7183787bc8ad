"""The head poller: asks the dashboard round by round and stores what is new, under the session it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from raykeeper.clock import Clock
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.collector.poll.answers import Asks
from raykeeper.collector.poll.endpoints import JOBS, SERVE, VERSION, Endpoint, polled_endpoints
from raykeeper.collector.poll.facts import HeadFacts, parse_session_name, with_answer
from raykeeper.collector.poll.jobs import parse_jobs
from raykeeper.collector.poll.living import LivingActors
from raykeeper.collector.poll.outbox import Outbox, Puts
from raykeeper.collector.poll.reach import Reach
from raykeeper.collector.poll.sameness import says_nothing
from raykeeper.collector.poll.schedule import SessionPolls
from raykeeper.collector.settings import HeadSettings
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.names import is_session_name
from raykeeper.layout.polled import encode_polled, polled_body, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.logs import Log
from raykeeper.ray.dashboard import Answer
from raykeeper.ray.errors import OversizedAnswer, RayRefused

MIN_PAUSE_SECONDS = 1.0
HELD_BYTES = 4 << 20
"""Of answers of one round that wait for its end."""
LAST_POLL_CONCURRENCY = 4  # a slow answer must not cost the others their time; more would slow a dying head

NOTHING = Answer(200, b'{"datasets": [], "train_runs": []}', "application/json")
"""In place of an answer about what is not there."""

log = Log("raykeeper.collector.poll")


class Sessions(Protocol):
    """The part of what is known from the disk that is needed here."""

    def current_session(self) -> str | None:
        """The session that runs beside us."""


@dataclass(frozen=True)
class PollSettings:
    """Whose answers they are, and how often they are asked for."""

    namespace: str
    """Of the cluster: part of every key."""
    cluster: str
    """Its name, likewise."""
    poll_seconds: float = HeadSettings.poll_seconds
    """Between two looks at what may change."""
    additional_endpoints: tuple[str, ...] = ()
    """Paths that the user wants to be asked too."""


@dataclass(frozen=True)
class _Taken:
    """One answer of a round."""

    endpoint: Endpoint
    answer: Answer
    at: datetime


class HeadPoller:
    """Polls one dashboard for ever. Whatever the dashboard does costs no more than a line in the log."""

    def __init__(
        self,
        dashboard: Asks,
        sessions: Sessions,
        bucket: Puts,
        settings: PollSettings,
        clock: Clock,
        metrics: CollectorMetrics,
    ) -> None:
        self._dashboard = dashboard
        self._sessions = sessions
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._endpoints = polled_endpoints(settings.poll_seconds, settings.additional_endpoints)
        self._session: str | None = None
        self._polls = SessionPolls((), settings.poll_seconds, 0.0)
        self._living = LivingActors(dashboard, clock, settings.poll_seconds / 2)
        self._facts: dict[str, HeadFacts] = {}
        self._reach = Reach()
        self._oversized: set[str] = set()
        self._asking = asyncio.Lock()
        self._keeping = asyncio.Lock()
        self.outbox = Outbox(bucket, metrics)

    def facts(self, session: str) -> HeadFacts:
        """What the head has said about itself in that session so far."""
        return self._facts.get(session, HeadFacts())

    async def run(self) -> None:
        """Poll and send until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.outbox.run())
            pause = 0.0
            while True:
                await asyncio.sleep(pause)
                pause = await self._guarded_poll()

    async def poll(self) -> float:
        """One round: ask what is due. Returns the seconds until the next."""
        try:
            session = await self._session_now()
            if session is None:
                return self._settings.poll_seconds
            await self._round(session)
        except (Unavailable, OversizedAnswer) as exc:
            self._metrics.polls.labels("unanswered").inc()
            return self._reach.lost(exc)
        except RayRefused as exc:
            self._metrics.polls.labels("refused").inc()
            return self._reach.refused(exc)
        pause = self._polls.next_at() - self._clock.steady()
        return min(max(pause, MIN_PAUSE_SECONDS), self._settings.poll_seconds)

    async def ask_all(self, seconds: float) -> bool:
        """Ask everything that may have changed and have it sent, while `run` goes on; whether that took no longer.

        For a head that is about to end and can still answer.
        """
        try:
            async with asyncio.timeout(seconds):
                async with self._asking:
                    if (session := await self._session_now()) is not None:
                        await self._last_round(session)
                await self.outbox.wait_empty()
        except (TimeoutError, Unavailable, RayRefused, OversizedAnswer) as exc:
            log.warning("the head could not be asked before its end", cause=str(exc) or "no time left")
            return False
        return True

    async def last_poll(self, deadline: float) -> bool:
        """Ask everything once more and send it; whether that was done when the steady clock read `deadline`.

        Assumes that `run` has ended.
        """
        try:
            async with asyncio.timeout(deadline - self._clock.steady()):
                if (session := await self._session_now()) is not None:
                    await self._last_round(session)
                await self.outbox.drain()
        except TimeoutError:
            log.warning("last poll ran out of time", unsent_bytes=self.outbox.size)
            return False
        except (Unavailable, RayRefused, OversizedAnswer) as exc:
            log.info("last poll not answered", cause=str(exc))
            return await self._drained(deadline)
        return True

    async def _drained(self, deadline: float) -> bool:
        """Send what earlier polls left, although the head is silent."""
        try:
            async with asyncio.timeout(deadline - self._clock.steady()):
                await self.outbox.drain()
        except TimeoutError:
            return False
        return True

    async def _guarded_poll(self) -> float:
        try:
            async with self._asking:
                return await self.poll()
        except Exception:
            log.exception("poll failed")
            return self._settings.poll_seconds

    async def _session_now(self) -> str | None:
        """The session that the dashboard is of: by its own word, else by what is on disk."""
        answer = await self._dashboard.get(VERSION)
        self._reach.found()
        named = await asyncio.to_thread(parse_session_name, answer.body) if answer.is_ok else ""
        return named if is_session_name(named) else self._sessions.current_session()

    async def _round(self, session: str) -> None:
        self._enter(session)
        taken: list[_Taken] = []
        for endpoint in self._polls.due(self._clock.steady()):
            if (got := await self._ask(endpoint)) is not None:
                taken.append(got)
            if sum(len(held.answer.body) for held in taken) > HELD_BYTES:
                await self._keep(session, taken)
                taken.clear()
        await self._keep(session, taken)

    async def _last_round(self, session: str) -> None:
        self._enter(session)
        turns = asyncio.Semaphore(LAST_POLL_CONCURRENCY)

        async def ask_in_turn(endpoint: Endpoint) -> None:
            async with turns:
                await self._ask_last(session, endpoint)

        async with asyncio.TaskGroup() as group:
            for endpoint in self._polls.last():
                group.create_task(ask_in_turn(endpoint))

    async def _ask_last(self, session: str, endpoint: Endpoint) -> None:
        try:
            got = await self._ask(endpoint)
            # A Serve that goes down lists nothing: that is no news about what ran.
            if got and not (endpoint.name == SERVE and says_nothing(got.answer.body)):
                await self._keep(session, [got])
        except (Unavailable, RayRefused, OversizedAnswer) as exc:
            log.debug("endpoint not answered at the end", path=endpoint.path, cause=str(exc))

    def _enter(self, session: str) -> None:
        """Begin anew for a session that was not polled before."""
        if session != self._session:
            log.info("polling session", session=session)
            self._session = session
            self._polls = SessionPolls(self._endpoints, self._settings.poll_seconds, self._clock.steady())
            self._living = LivingActors(self._dashboard, self._clock, self._settings.poll_seconds / 2)

    async def _ask(self, endpoint: Endpoint) -> _Taken | None:
        """The answer, or None when this endpoint fails although the dashboard is there."""
        try:
            if endpoint.actor_class and not await self._living.may_live(endpoint.actor_class):
                return _Taken(endpoint, NOTHING, self._clock.now())
            answer = await self._dashboard.get(endpoint.path, endpoint.limit_bytes)
        except Unavailable as exc:
            self._metrics.polls.labels("unanswered").inc()
            log.debug("endpoint not answered", path=endpoint.path, cause=str(exc))
        except OversizedAnswer as exc:
            self._metrics.polls.labels("oversized").inc()
            self._tell_oversized(exc)
        else:
            self._metrics.polls.labels("answered" if answer.is_ok else "error").inc()
            return _Taken(endpoint, answer, self._clock.now())
        self._polls.failed(endpoint, self._clock.steady())
        return None

    def _tell_oversized(self, error: OversizedAnswer) -> None:
        """Once for each path: unlike a silent dashboard, this one will never be stored."""
        if error.path not in self._oversized:
            self._oversized.add(error.path)
            log.warning("answer too large to be kept", cause=str(error))

    async def _keep(self, session: str, taken: Sequence[_Taken]) -> None:
        """Store what is new, unless the head was replaced meanwhile: then nobody knows which one answered."""
        if not taken or await self._session_now() != session:
            return
        async with self._keeping:  # one at a time: each takes memory, and changes what is remembered of the polls
            for got in taken:
                try:
                    await self._keep_one(session, got)
                except Exception:  # one answer's trouble is not the others'
                    log.exception("answer not kept", path=got.endpoint.path)

    async def _keep_one(self, session: str, got: _Taken) -> None:
        """In threads: an answer may have 32 MB, and events must be taken meanwhile."""
        if await asyncio.to_thread(self._polls.answered, got.endpoint, got.answer, self._clock.steady()):
            self.outbox.add(self._key(session, got), await asyncio.to_thread(_encoded, got))
        if got.answer.is_ok:
            await asyncio.to_thread(self._learn, session, got)

    def _key(self, session: str, got: _Taken) -> str:
        id_ = SessionId(self._settings.namespace, self._settings.cluster, session)
        return PolledKey(id_, polled_name(got.endpoint.name), round(got.at.timestamp() * 1000)).key

    def _learn(self, session: str, got: _Taken) -> None:
        self._facts[session] = with_answer(self.facts(session), got.endpoint.name, got.answer.body)
        if got.endpoint.name == JOBS:
            self._polls.see_jobs(parse_jobs(got.answer.body), self._clock.steady())


def _encoded(got: _Taken) -> bytes:
    body = polled_body(got.answer.body)
    return encode_polled(PolledAnswer(path=got.endpoint.name, polled_at=got.at, status=got.answer.status, body=body))
