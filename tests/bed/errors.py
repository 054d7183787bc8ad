"""What the test bed raises when it cannot do what was asked."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError


class BedError(RaykeeperError):
    """One sentence for a person: what failed, why, and what cures it. Commands print it without a traceback."""
