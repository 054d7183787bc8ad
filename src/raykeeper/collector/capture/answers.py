"""Asking a dashboard and keeping what it said, each answer as an object of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from raykeeper.clock import Clock
from raykeeper.collector.poll.answers import Asks
from raykeeper.collector.poll.outbox import Puts
from raykeeper.errors import Unavailable
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.polled import encode_polled, polled_body, polled_name
from raykeeper.layout.records import PolledAnswer
from raykeeper.ray.dashboard import Answer
from raykeeper.ray.errors import OversizedAnswer

Say = Callable[[str], None]
"""Tells the user how far it is, a line at a time."""


@dataclass
class Tally:
    """What was taken so far, and what could not be."""

    answers: int = 0
    rows: int = 0
    log_files: int = 0
    log_bytes: int = 0
    gaps: list[str] = field(default_factory=list)
    """One line for each thing that is missing."""


class AnswerTaker:
    """Asks for a path and stores the answer under the session."""

    def __init__(self, dashboard: Asks, bucket: Puts, session: SessionId, clock: Clock, tally: Tally) -> None:
        self._dashboard = dashboard
        self._bucket = bucket
        self._session = session
        self._clock = clock
        self._tally = tally

    async def take(self, path: str, name: str = "", *, is_needed: bool = False) -> Answer | None:
        """The answer, stored if it is one; None if there was none. What is `needed` and missing is a gap."""
        try:
            answer = await self._dashboard.get(path)
        except (Unavailable, OversizedAnswer) as exc:
            self._tally.gaps.append(str(exc))
            return None
        if answer.is_ok:
            await self._store(name or path, answer)
            return answer
        if is_needed:
            self._tally.gaps.append(f"{path} answered {answer.status}")
        return None

    async def _store(self, name: str, answer: Answer) -> None:
        now = self._clock.now()
        record = PolledAnswer(path=name, polled_at=now, status=answer.status, body=polled_body(answer.body))
        key = PolledKey(self._session, polled_name(name), round(now.timestamp() * 1000)).key
        await self._bucket.put(key, encode_polled(record))
        self._tally.answers += 1
