"""The disk budget: what journals and sealed segments take together, and when that is too much."""

from __future__ import annotations

from raykeeper.collector.events.limits import SOFT_SHARE
from raykeeper.errors import Unavailable


class SpoolFull(Unavailable):
    """A batch could not be kept: the budget is used up, or the disk refused it. Ray sends it again."""

    def __init__(self, cause: str) -> None:
        super().__init__("event spool", cause)


class DiskBudget:
    """Counts bytes on disk and those promised to bodies on their way there."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0

    @property
    def is_pressed(self) -> bool:
        """Whether everything is to be sealed and shipped at once."""
        return self.used > self.max_bytes * SOFT_SHARE

    @property
    def is_exhausted(self) -> bool:
        return self.used >= self.max_bytes

    def take(self, size: int) -> None:
        """Promise `size` bytes. Raises SpoolFull, and promises nothing, where they would exceed the budget."""
        self.check(size)
        self.used += size

    def check(self, size: int) -> None:
        """Raises SpoolFull where `size` more bytes would exceed the budget."""
        if self.used + size > self.max_bytes:
            raise SpoolFull(f"{self.used} of {self.max_bytes} bytes are used")

    def add(self, size: int) -> None:
        """Count what is on disk already, or must go there so that more can be freed."""
        self.used += size

    def give_back(self, size: int) -> None:
        self.used -= size
