"""Which files are looked at when. Pure.

A look at a file costs a few microseconds, and a long run leaves ten thousand files that are never written again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto

from raykeeper.collector.logs.kinds import Kind
from raykeeper.collector.logs.tracked import TrackedFile

SECOND_NS = 1_000_000_000
QUIET_SECONDS = 600.0
QUIET_LOOK_SECONDS = 10.0
"""Between two looks at a file that was not written for ten minutes: what it says is still readable within 15 s."""
SILENT_SECONDS = 3600.0
SILENT_LOOK_SECONDS = 30.0
"""The same after an hour: as often as at Ray's own logs. Of a long run's files nearly all are such."""


class Scope(Enum):
    """How much one look takes in."""

    USER = auto()
    """What users' code writes, in the running session, as far as it is its turn."""
    ALL = auto()
    """Ray's own logs and past sessions, too."""
    LAST = auto()
    """Every file, whosever turn it is: there will be no other look."""


@dataclass(frozen=True)
class Look:
    """One look of many that follow each other every `tick_seconds`."""

    scope: Scope
    number: int
    now_ns: int
    tick_seconds: float

    def due(self, files: Collection[TrackedFile], *, is_past: bool) -> list[TrackedFile]:
        """The files of a session to look at now: quiet ones take turns, so that looks take about the same time."""
        if self.scope is Scope.LAST or is_past:  # past sessions have their turn with `ALL` alone, so it is everyone's
            return list(files)
        components = [file for file in files if file.kind is Kind.COMPONENT] if self.scope is Scope.ALL else []
        return components + self._users_due(files)

    def _users_due(self, files: Collection[TrackedFile]) -> list[TrackedFile]:
        # One pass without calls: ten thousand files are asked at every look.
        quiet_since, silent_since = self._before(QUIET_SECONDS), self._before(SILENT_SECONDS)
        quiet_looks, silent_looks = self._looks_in(QUIET_LOOK_SECONDS), self._looks_in(SILENT_LOOK_SECONDS)
        number = self.number
        return [
            file
            for file in files
            if (
                file.mtime_ns >= quiet_since
                # Inodes of files that were made after one another mostly count up, which spreads them over the looks.
                or (file.inode + number) % (quiet_looks if file.mtime_ns >= silent_since else silent_looks) == 0
            )
            and file.kind is Kind.USER
        ]

    def _before(self, seconds: float) -> int:
        return self.now_ns - int(seconds * SECOND_NS)

    def _looks_in(self, seconds: float) -> int:
        return max(1, int(seconds / self.tick_seconds))
