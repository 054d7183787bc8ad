"""Waiting longer after each failure, with jitter so that clients that failed together do not return together."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """`base`, then `factor` times more after each failure, never above `limit`; spread by ± `jitter`."""

    base: float
    limit: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay(
        self, failures: int, uniform: Callable[[float, float], float] = random.uniform, *, at_most: float = math.inf
    ) -> float:
        """Seconds to wait after the given number of failures in a row (1 is the first); `at_most` before jitter."""
        # The exponent is bounded so that a key failing for weeks cannot overflow a float.
        raw = min(self.limit, at_most, self.base * self.factor ** min(failures - 1, 63))
        return raw * uniform(1 - self.jitter, 1 + self.jitter) if self.jitter else raw
