"""Connections that requests take turns on, so that slow ones leave some to everybody else.

HTTP/1.1 carries one request at a time, and a write lasts as long as the slowest admission webhook of its namespace:
without a limit on one namespace, its webhook would stop the writes of all.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field

from raykeeper.clock import Clock
from raykeeper.kube.errors import NotDone

READ_CONNECTIONS = 32
WRITE_CONNECTIONS = 64
"""Four times the default concurrency of the controllers."""
RELAY_CONNECTIONS = 16
"""For servers behind the API server, such as Ray heads, any of which may never answer."""


@dataclass(eq=False)
class Slot:
    """One request's turn; `about` says what it does, for the message to those who waited in vain."""

    namespace: str
    about: str
    since: float = 0.0
    turn: asyncio.Future[None] | None = None


@dataclass
class Slots:
    """`limit` turns at once, `share` of them for one namespace; first come, first served within these."""

    purpose: str
    limit: int
    share: int
    clock: Clock
    _taken: dict[Slot, None] = field(default_factory=dict)
    _taken_by: Counter[str] = field(default_factory=Counter)
    _queue: deque[Slot] = field(default_factory=deque)

    async def take(self, namespace: str, about: str, patience: float) -> Slot:
        """A turn, to be given to `release`. Raises `NotDone` when none is free for `patience` seconds."""
        slot = Slot(namespace, about)
        if self._is_free(slot):
            self._grant(slot)
            return slot
        slot.turn = asyncio.get_running_loop().create_future()
        self._queue.append(slot)
        try:
            async with asyncio.timeout(patience):
                await slot.turn
        except TimeoutError as exc:
            self._leave(slot)
            raise NotDone("kubernetes API", f"{about}: not sent, {self._why_busy(namespace, patience)}") from exc
        except asyncio.CancelledError:
            self._leave(slot)
            raise
        return slot

    def release(self, slot: Slot) -> None:
        """End a turn; the first in the queue who may begins."""
        del self._taken[slot]
        self._taken_by[slot.namespace] -= 1
        if not self._taken_by[slot.namespace]:
            del self._taken_by[slot.namespace]
        for waiting in self._queue:
            # One whose future is done gives up at this moment, and has only not run since.
            if self._is_free(waiting) and waiting.turn is not None and not waiting.turn.done():
                self._queue.remove(waiting)
                self._grant(waiting)
                return

    def _is_free(self, slot: Slot) -> bool:
        return len(self._taken) < self.limit and self._taken_by[slot.namespace] < self.share

    def _grant(self, slot: Slot) -> None:
        slot.since = self.clock.steady()
        self._taken[slot] = None
        self._taken_by[slot.namespace] += 1
        if slot.turn is not None:
            slot.turn.set_result(None)

    def _leave(self, slot: Slot) -> None:
        """Who gives up leaves the queue, or gives back the turn that came at the same moment."""
        if slot in self._taken:
            self.release(slot)
        else:
            self._queue.remove(slot)

    def _why_busy(self, namespace: str, patience: float) -> str:
        holders = [slot for slot in self._taken if slot.namespace == namespace]
        scope = f"that namespace {namespace} may use" if namespace and len(holders) >= self.share else "there are"
        number = self.share if len(holders) >= self.share else self.limit
        busy = f"all {number} connections for {self.purpose} {scope} were in use for {patience:g} s"
        oldest = min(holders or self._taken, key=lambda slot: slot.since, default=None)
        if oldest is None:
            return busy
        return f"{busy}; {oldest.about} has waited for its answer for {self.clock.steady() - oldest.since:.0f} s"


@dataclass(frozen=True)
class Connections:
    """The turns of reads, of writes and of what is only passed on, which never wait for each other."""

    reads: Slots
    writes: Slots
    relays: Slots


def shared_connections(clock: Clock) -> Connections:
    """Those of a client. A namespace takes half of the writes at most, and a quarter of what is passed on."""
    return Connections(
        Slots("reads", READ_CONNECTIONS, READ_CONNECTIONS, clock),
        Slots("writes", WRITE_CONNECTIONS, WRITE_CONNECTIONS // 2, clock),
        Slots("proxied requests", RELAY_CONNECTIONS, RELAY_CONNECTIONS // 4, clock),
    )


def own_connections(limit: int, share: int, clock: Clock) -> Connections:
    """Those of one purpose alone."""
    slots = Slots("this purpose", limit, share, clock)
    return Connections(slots, slots, slots)
