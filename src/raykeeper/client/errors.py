"""What waiting can end with, beside success."""

from __future__ import annotations

from raykeeper.client.diagnosis import Diagnosis
from raykeeper.errors import RaykeeperError


class WaitError(RaykeeperError):
    """An object did not become what was waited for; `diagnosis` has everything known about it, and `str()` the gist."""

    def __init__(self, what: str, diagnosis: Diagnosis) -> None:
        super().__init__(f"{what}\n{diagnosis.summary()}")
        self.diagnosis = diagnosis


class WaitTimedOut(WaitError, TimeoutError):
    """It takes longer than the caller would wait."""


class WaitFailed(WaitError):
    """It will not become what was waited for unless somebody acts."""
