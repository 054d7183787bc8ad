"""What an import did, counted for the summary at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[str], None]
"""Tells the user how far it is, a line at a time."""

_NAMED = 20
"""Unreadable things named in the summary; the others are counted."""


@dataclass
class Tally:
    """What was copied so far, and what could not be."""

    sessions: int = 0
    running: int = 0
    """Sessions that were left out because they still run."""
    objects: int = 0
    """Written to the store by this import."""
    stored_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    there: int = 0
    """Objects that an earlier import had written."""
    unreadable: list[str] = field(default_factory=list)
    """One line for each thing that is missing or damaged."""

    def lines(self, *, is_dry_run: bool) -> list[str]:
        """The summary."""
        verb = "would be written" if is_dry_run else "written"
        told = [
            f"{self.sessions} sessions: {self.objects} objects {verb} ({to_mb(self.stored_bytes)} MB), "
            f"{self.there} were there already; {self.log_files} log files of {to_mb(self.log_bytes)} MB"
        ]
        if self.running:
            told.append(f"{self.running} sessions still run and were left out")
        if self.unreadable:
            told.append(f"{len(self.unreadable)} things could not be read:")
            told += [f"  {line}" for line in self.unreadable[:_NAMED]]
            told += ["  …"] if len(self.unreadable) > _NAMED else []
        return told


def to_mb(size: int) -> str:
    return f"{size / 1e6:.1f}"
