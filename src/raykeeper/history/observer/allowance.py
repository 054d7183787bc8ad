"""How many objects one cluster may cost in a time."""

from __future__ import annotations


class Allowance:
    """Some at once, then so many an hour, as a bucket of tokens."""

    def __init__(self, burst: int, per_hour: int) -> None:
        self._burst = float(burst)
        self._per_second = per_hour / 3600.0
        self._tokens = self._burst
        self._counted_at = float("-inf")

    def seconds_left(self, steady: float) -> float:
        """Time until the next one may be made; zero when it may be now."""
        return max(0.0, (1.0 - self._available(steady)) / self._per_second)

    def spend(self, steady: float) -> None:
        """One is made."""
        self._tokens, self._counted_at = self._available(steady) - 1.0, steady

    def refund(self) -> None:
        """The last one was not made after all."""
        self._tokens += 1.0

    def is_full(self, steady: float) -> bool:
        """Whether it is as good as new."""
        return self._available(steady) >= self._burst

    def _available(self, steady: float) -> float:
        return min(self._burst, self._tokens + (steady - self._counted_at) * self._per_second)
