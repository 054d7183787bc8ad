"""How long a call waits for a store, and how often it asks again."""

from __future__ import annotations

from dataclasses import dataclass

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

    def pause_seconds(self, attempt: int, dice: float) -> float:
        """Time before asking again after attempt 0, 1, …; `dice` in [0, 1) spreads callers over all of it."""
        return dice * min(self.longest_pause_seconds, _FIRST_PAUSE_SECONDS * 2.0**attempt)
