"""How long a call waits for a store, and how often it asks again."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.backoff import Backoff

KIB = 1024
_FIRST_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Patience:
    """Limits of one call. An outage that outlasts them is the caller's to wait for: it knows what may be held back."""

    first_byte_seconds: float = 5.0
    """Time for connecting and for an answer to begin; also the longest silence within one."""
    bytes_per_second: int = 128 * KIB
    """The slowest transfer that is still waited for."""
    attempts: int = 3
    """How often one call asks in all."""
    longest_pause_seconds: float = 2.0
    """No pause between two attempts is longer."""

    def transfer_seconds(self, size: int) -> float:
        """Time for one attempt to send `size` bytes."""
        return self.first_byte_seconds + size / self.bytes_per_second

    @property
    def pauses(self) -> Backoff:
        """Between two attempts. The jitter spreads callers from none to twice the middle."""
        return Backoff(base=_FIRST_PAUSE_SECONDS / 2, limit=self.longest_pause_seconds / 2, jitter=1.0)
