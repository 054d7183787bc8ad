"""Connections that requests take turns on, so that slow ones leave some to everybody else.

HTTP/1.1 carries one request at a time, and a write lasts as long as the slowest admission webhook of its namespace:
without a limit on one namespace, its webhook would stop the writes of all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter

from raykeeper.clock import Clock
from raykeeper.kube.errors import NotDone
from raykeeper.kube.line import Line

READ_CONNECTIONS = 32
WRITE_CONNECTIONS = 64
"""Four times the default concurrency of the controllers."""
RELAY_CONNECTIONS = 64
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
    """`limit` turns at once, `share` of them for one namespace. Namespaces that wait take turns; within one it is
    first come, first served.

    Where a namespace may not have all, it may neither have more than there are left: one whose requests all hang takes
    its share, the next one half of the rest, and so on, so that whoever comes later finds a turn.
    """

    purpose: str
    limit: int
    share: int
    clock: Clock
    _taken: dict[Slot, None] = field(default_factory=dict)
    _taken_by: Counter[str] = field(default_factory=Counter)
    _line: Line[Slot] = field(default_factory=lambda: Line(attrgetter("namespace")))

    async def take(self, namespace: str, about: str, patience: float | None) -> Slot:
        """A turn, to be given to `release`. Raises `NotDone` when none is free for `patience` seconds, if any."""
        slot = Slot(namespace, about)
        if self._is_free(namespace):
            self._grant(slot)
            return slot
        slot.turn = asyncio.get_running_loop().create_future()
        self._line.add(slot, self.clock.steady())
        try:
            async with asyncio.timeout(patience):
                await slot.turn
        except TimeoutError as exc:
            self._leave(slot)
            raise NotDone("kubernetes API", f"{about}: not sent, {self._why_busy(namespace, patience or 0.0)}") from exc
        except asyncio.CancelledError:
            self._leave(slot)
            raise
        return slot

    def release(self, slot: Slot) -> None:
        """End a turn; who may begin now does."""
        del self._taken[slot]
        self._taken_by[slot.namespace] -= 1
        if not self._taken_by[slot.namespace]:
            del self._taken_by[slot.namespace]
        while (waiting := self._line.first(self._is_free)) is not None:
            self._line.take(waiting)
            # One whose future is done gives up at this moment, and has only not run since.
            if waiting.turn is not None and not waiting.turn.done():
                self._grant(waiting)

    def _is_free(self, namespace: str) -> bool:
        left, own = self.limit - len(self._taken), self._taken_by[namespace]
        return left > 0 and own < self.share and (own < left or self.share == self.limit)

    def _grant(self, slot: Slot) -> None:
        slot.since = self.clock.steady()
        self._taken[slot] = None
        self._taken_by[slot.namespace] += 1
        if slot.turn is not None:
            slot.turn.set_result(None)

    def _leave(self, slot: Slot) -> None:
        """Who gives up leaves the line, or gives back the turn that came at the same moment."""
        if slot in self._taken:
            self.release(slot)
        elif slot in self._line:
            self._line.remove(slot)

    def _why_busy(self, namespace: str, patience: float) -> str:
        holders = [slot for slot in self._taken if slot.namespace == namespace]
        is_own_share = len(self._taken) < self.limit
        scope = f"that namespace {namespace} may use" if namespace and is_own_share else "there are"
        number = len(holders) if is_own_share else self.limit
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
    """Those of a client. A namespace takes half of the writes at most, and half of what is passed on."""
    return Connections(
        Slots("reads", READ_CONNECTIONS, READ_CONNECTIONS, clock),
        Slots("writes", WRITE_CONNECTIONS, WRITE_CONNECTIONS // 2, clock),
        Slots("proxied requests", RELAY_CONNECTIONS, RELAY_CONNECTIONS // 2, clock),
    )


def own_connections(limit: int, share: int, clock: Clock) -> Connections:
    """Those of one purpose alone."""
    slots = Slots("this purpose", limit, share, clock)
    return Connections(slots, slots, slots)
