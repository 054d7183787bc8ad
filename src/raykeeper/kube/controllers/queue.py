"""Which key is worked on next: between informers that say "look at this object" and the workers of a controller.

For one event loop only; nothing here is locked. No task and no timer runs while nobody waits in `get()`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable
from enum import IntEnum
from functools import partial
from typing import Generic, TypeVar

from raykeeper.backoff import Backoff
from raykeeper.clock import Clock
from raykeeper.kube.controllers.delays import Delays
from raykeeper.kube.controllers.passes import Passes
from raykeeper.kube.line import Line
from raykeeper.kube.metrics import KubeMetrics

K = TypeVar("K", bound=Hashable)

# client-go starts at 5 ms and ends at 1000 s. Our informers show a write after some 20 ms, so a retry within 5 ms only
# reads the same cache again; and who has repaired a quota should not wait 17 minutes: 5, as a crash-looping container.
RETRY_BACKOFF = Backoff(base=0.05, limit=300.0, jitter=0.2)

# The event loop's clock stands still while the machine is suspended and ours does not: after waking up a deadline
# is at most this much late.
_LONGEST_SLEEP_SECONDS = 60.0


TURN = 8
"""While keys of several priorities wait, every so many hand-outs a lower one has its turn: none waits for ever."""


WORKERS = 16
"""Keys worked on at the same time; work waits for the API server most of the time."""


class Priority(IntEnum):
    """Who is served first, in this order; 0 and -100 are the numbers of controller-runtime."""

    HIGH = 100
    """News that somebody waits for, such as the end of a job: not behind a thousand others that start."""
    NORMAL = 0
    """Something happened."""
    LOW = -100
    """Nothing happened: a first look after the start, a routine look."""


class QueueShutDown(Exception):
    """No more keys are handed out."""


class WorkQueue(Generic[K]):
    """Keys to be worked on, each at most once at a time.

    Guarantees:
    - A key that was added is handed out afterwards, whenever that was; added several times before, it is there once.
    - A key is never handed out again before `done`; if added meanwhile, it stands in line again on `done`.
    - Among those of one priority, namespaces take turns; within one it is first come, first served. A key that is
      added again keeps its place, and after `done` starts at the end: one that is added all the time runs once per
      round and cannot starve the others.
    - What waits and is added with a higher priority is served with those of that one.
    - `workers` keys are worked on at once, and more only where work on some lasts; see `Passes`.
    """

    def __init__(
        self,
        name: str,
        metrics: KubeMetrics,
        clock: Clock,
        backoff: Backoff = RETRY_BACKOFF,
        *,
        workers: int = WORKERS,
        namespace_of: Callable[[K], str] = lambda _: "",
    ) -> None:
        self.name = name
        self.passes = Passes(workers, namespace_of)
        self._clock = clock
        self._backoff = backoff
        self._lines: dict[Priority, Line[K]] = {priority: Line(namespace_of) for priority in Priority}
        self._again: dict[K, tuple[float, Priority]] = {}  # with a worker and added since
        self._served_low: set[K] = set()  # with a worker, handed out with low priority
        self._delays: Delays[K] = Delays()
        self._delayed_low: set[K] = set()  # those of the delayed keys that come back with low priority
        self._passed_over = dict.fromkeys(Priority, 0)  # hand-outs to others while somebody waited with this priority
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = math.inf
        self._is_shut_down = False
        # A queue has its controller's name, so controller-runtime's two labels are the same.
        self._adds = metrics.queue_adds.labels(name, name)
        self._retries = metrics.queue_retries.labels(name, name)
        self._queue_seconds = metrics.queue_seconds.labels(name, name)
        self._work_seconds = metrics.work_seconds.labels(name, name)
        # Read when scraped: an idle queue costs nothing.
        for priority in Priority:
            metrics.queue_depth.labels(name, name, int(priority)).set_function(partial(self.depth, priority))
        metrics.unfinished_seconds.labels(name, name).set_function(self.unfinished_seconds)
        metrics.longest_seconds.labels(name, name).set_function(self.longest_running_seconds)

    def __len__(self) -> int:
        """Keys that wait for a worker."""
        self.wake()
        return sum(len(line) for line in self._lines.values())

    def depth(self, priority: Priority) -> int:
        """Those of them that have this priority."""
        self.wake()
        return len(self._lines[priority])

    def add(self, key: K, priority: Priority = Priority.NORMAL) -> None:
        """Have the key worked on as soon as a worker is free. A deadline it may have from `add_after` stays."""
        self.wake()
        self._enter(key, self._clock.steady(), priority)

    def add_after(self, key: K, seconds: float, priority: Priority = Priority.NORMAL) -> None:
        """Have the key worked on in `seconds`, or at an earlier deadline of its own, with normal or low priority."""
        if self._is_shut_down:
            return
        if not seconds > 0:
            self.add(key, priority)
            return
        if priority is not Priority.LOW:
            self._delayed_low.discard(key)
        elif key not in self._delays:
            self._delayed_low.add(key)
        self._delays.put(key, self._clock.steady() + seconds)
        self._set_timer()

    def add_rate_limited(self, key: K, *, at_least: float = 0.0, at_most: float = math.inf) -> None:
        """Have the key worked on after one more step of its back-off, which grows to `at_most` seconds.

        `at_least` is what a server asked for, and wins.
        """
        if self._is_shut_down:
            return
        self._failures[key] = self.failures(key) + 1
        self._retries.inc()
        delay = self._backoff.delay(self._failures[key], at_most=at_most)
        self.add_after(key, max(at_least, delay), self.priority_of(key))

    def priority_of(self, key: K) -> Priority:
        """The priority with which a key that is worked on was handed out."""
        return Priority.LOW if key in self._served_low else Priority.NORMAL

    def failures(self, key: K) -> int:
        """How often the key was rate limited since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Start the back-off of the key anew."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The key whose turn it is, as soon as there is one; `done` must follow. Raises `QueueShutDown`."""
        while True:
            try:
                return self.get_nowait()
            except asyncio.QueueEmpty:
                await self._wait_for_key()

    def get_nowait(self) -> K:
        """The key whose turn it is; `done` must follow. Raises `QueueShutDown` or `asyncio.QueueEmpty`."""
        if self._is_shut_down:
            raise QueueShutDown(self.name)
        self.wake()
        candidates = self._candidates()
        if not candidates:
            raise asyncio.QueueEmpty
        priority = self._next_priority(candidates)
        key = candidates[priority]
        since, now = self._lines[priority].take(key), self._clock.steady()
        if priority is Priority.LOW:
            self._served_low.add(key)
        self.passes.begin(key, now)
        self._queue_seconds.observe(now - since)
        self._rouse_if_useful()
        return key

    def _candidates(self) -> dict[Priority, K]:
        """Of each priority the key that could be handed out now."""
        if not self.passes.has_room(self._clock.steady()):
            return {}
        firsts = {priority: line.first(self.passes.may_begin) for priority, line in self._lines.items() if line}
        return {priority: key for priority, key in firsts.items() if key is not None}

    def _next_priority(self, waiting: Collection[Priority]) -> Priority:
        """The one whose first key has its turn."""
        chosen = next((priority for priority in waiting if self._passed_over[priority] >= TURN - 1), max(waiting))
        for priority in Priority:
            is_passed_over = priority in waiting and priority is not chosen
            self._passed_over[priority] = self._passed_over[priority] + 1 if is_passed_over else 0
        return chosen

    def done(self, key: K) -> None:
        """End the work on a key that was handed out; one that was added meanwhile stands in line again."""
        self._work_seconds.observe(self._clock.steady() - self.passes.end(key))
        self._served_low.discard(key)
        again = self._again.pop(key, None)
        if again is not None:
            self._lines[again[1]].add(key, again[0])
        if self._is_called_for():
            # Not before whoever is done had the chance to take the next key: waking another for it would be in vain.
            asyncio.get_running_loop().call_soon(self._rouse_if_useful)

    def shut_down(self) -> None:
        """Hand out no more keys: every `get` raises `QueueShutDown`, later adds do nothing.

        Keys still in line are dropped, unlike in client-go. Whoever works next lists all objects anyway, so a long line
        would only delay the hand-over.
        """
        self._is_shut_down = True
        for line in self._lines.values():
            line.clear()
        self._again.clear()
        self._delays.clear()
        self._delayed_low.clear()
        self._failures.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._rouse_getter()

    def wake(self) -> None:
        """Move the keys whose deadline has come into the line.

        Every look at the queue does this first, and a timer while workers wait; a test calls it after moving the clock.
        """
        for key, deadline in self._delays.pop_due(self._clock.steady()):
            priority = Priority.LOW if key in self._delayed_low else Priority.NORMAL
            self._delayed_low.discard(key)
            self._enter(key, deadline, priority)

    def unfinished_seconds(self) -> float:
        """How long the keys that are being worked on have been so, summed."""
        return self.passes.total_seconds(self._clock.steady())

    def longest_running_seconds(self) -> float:
        """How long the key that a worker has had longest has been worked on; 0 if none is."""
        return self.passes.longest_seconds(self._clock.steady())

    def _enter(self, key: K, since: float, priority: Priority) -> None:
        if self._is_shut_down:
            return
        known = self._known(key)
        if known is None:
            self._adds.inc()
        elif known >= priority:
            return
        if key in self.passes:
            self._again[key] = (self._again.get(key, (since, priority))[0], priority)
        else:
            waited_since = self._lines[known].remove(key) if known is not None else since
            self._stand_in_line(key, waited_since, priority)

    def _known(self, key: K) -> Priority | None:
        """The priority with which the key waits already, in line or for the end of the work on it."""
        if key in self._again:
            return self._again[key][1]
        return next((priority for priority, line in self._lines.items() if key in line), None)

    def _stand_in_line(self, key: K, since: float, priority: Priority) -> None:
        self._lines[priority].add(key, since)
        self._rouse_if_useful()

    async def _wait_for_key(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        self._set_timer()
        try:
            await getter
        except asyncio.CancelledError:
            if not getter.cancelled():
                self._rouse_getter()  # the key we were roused for is still there: another worker must hear of it
            elif getter in self._getters:  # else an add has met it and dropped it
                self._getters.remove(getter)
            raise

    def _is_called_for(self) -> bool:
        """Whether a key waits, and a worker for one."""
        return bool(self._getters) and any(self._lines.values())

    def _rouse_if_useful(self) -> None:
        """Each worker that takes a key calls the next one, so that as many come as there are keys for them."""
        if not self._is_called_for():
            return
        if self._candidates():
            self._rouse_getter()
        else:
            self._set_timer()

    def _rouse_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        """Make sure that waiting workers are roused at the next deadline."""
        deadline = self._next_deadline()
        if deadline is None or not self._getters or deadline >= self._timer_deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        wait = min(max(deadline - self._clock.steady(), 0.0), _LONGEST_SLEEP_SECONDS)
        self._timer_deadline = deadline
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)

    def _next_deadline(self) -> float | None:
        """When a key is due, or there is room for one that waits."""
        has_waiting = any(self._lines.values())
        deadlines = (self._delays.next_deadline(), self.passes.next_room() if has_waiting else None)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def _on_timer(self) -> None:
        self._timer, self._timer_deadline = None, math.inf
        self.wake()
        self._rouse_if_useful()
        self._set_timer()  # for the next deadline, whoever was roused for this one
