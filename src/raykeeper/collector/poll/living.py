"""Which of Ray's own actors live. Some endpoints would start one, so they are polled only if it lives already.

Asked for datasets, the dashboard makes Ray Data's actor for statistics: one more process on the head, and a task in the
lists of users with every question. Asked for Train runs, it fails, as if Train were not installed at all; whoever then
asks less and less often misses the run that begins later.
"""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from raykeeper.clock import Clock
from raykeeper.collector.poll.answers import Asks, UnreadableAnswer, read_answer
from raykeeper.ray.dashboard import Answer


class _Result(msgspec.Struct):
    total: int
    num_after_truncation: int
    result: list[msgspec.Raw]


class _Data(msgspec.Struct):
    result: _Result


class _Listed(msgspec.Struct):
    data: _Data


class LivingActors:
    """Of one session. Such actors are detached, so one that was seen is there to the end."""

    def __init__(self, dashboard: Asks, clock: Clock, hold_seconds: float) -> None:
        self._dashboard = dashboard
        self._clock = clock
        self._hold_seconds = hold_seconds
        self._seen: set[str] = set()
        self._missing_until: dict[str, float] = {}

    async def may_live(self, class_name: str) -> bool:
        """False only where the dashboard says so. Raises what it raises."""
        if class_name in self._seen:
            return True
        if self._clock.steady() < self._missing_until.get(class_name, 0.0):
            return False
        is_living = lives(await self._dashboard.get(living_actors(class_name)))
        if is_living:
            self._seen.add(class_name)
        if is_living is False:
            self._missing_until[class_name] = self._clock.steady() + self._hold_seconds
        return is_living is not False


def living_actors(class_name: str) -> str:
    """The question for living actors of a class."""
    filters = (("state", "ALIVE"), ("class_name", class_name))
    triples = [(("filter_keys", name), ("filter_predicates", "="), ("filter_values", value)) for name, value in filters]
    return f"/api/v0/actors?{urlencode([('limit', 1), *(part for triple in triples for part in triple)])}"


def lives(answer: Answer) -> bool | None:
    """Whether an answer of the state API lists any. None where it cannot be read, or not all were looked at."""
    if not answer.is_ok:
        return None
    try:
        found = read_answer(answer.body, _Listed).data.result
    except UnreadableAnswer:
        return None
    if found.result:
        return True
    return False if found.num_after_truncation == found.total else None
