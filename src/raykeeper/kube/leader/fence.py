"""The last look at the lease before a write leaves: closed unless leading is certain."""

from __future__ import annotations

from raykeeper.clock import Clock
from raykeeper.kube.errors import NotLeading
from raykeeper.kube.metrics import KubeMetrics


class LeaseFence:
    """Lets writes pass until a deadline that only a renewed lease moves.

    Guarantees: once past its deadline it never opens again. A process that paused (SIGSTOP, a suspended machine) finds
    it closed when it wakes, because the deadline is on a clock that went on meanwhile.
    """

    def __init__(self, clock: Clock, metrics: KubeMetrics) -> None:
        self._clock = clock
        self._withheld = metrics.withheld_writes
        self._deadline: float | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        """Whether a write may be sent at this moment."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds until it closes by itself; zero or less when closed."""
        if self._deadline is None or self._closed:
            return 0.0
        remaining = self._deadline - self._clock.steady()
        self._closed = remaining <= 0
        return remaining

    def extend(self, deadline: float) -> None:
        """Open until `deadline` (steady time) at least, unless it closed already or that moment has passed."""
        if self._deadline is None and deadline > self._clock.steady():
            self._deadline = deadline
        elif self.is_open and self._deadline is not None:
            self._deadline = max(self._deadline, deadline)

    def close(self) -> None:
        """Let nothing pass from now on."""
        self._closed = True

    def check(self) -> None:
        """Return if a write may be sent; raises NotLeading, and counts the write as withheld, if not."""
        if not self.is_open:
            self._withheld.inc()
            raise NotLeading("write withheld: the leader lease may be another's by now")
