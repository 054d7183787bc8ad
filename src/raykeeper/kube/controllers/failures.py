"""What a failed reconcile means, and whether it is worth a line: each trouble of a key is told once, not each retry."""

from __future__ import annotations

import traceback
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from raykeeper.clock import Clock
from raykeeper.errors import InvalidSpec, RaykeeperError, Unavailable
from raykeeper.kube.errors import Conflict, Expired, NotFound, NotLeading, TooManyRequests

K = TypeVar("K", bound=Hashable)

LASTING_SECONDS = 30.0  # a restart of the API server or a new etcd leader is over by then
_MOST_TOLD = 32  # of one key; a message that differs each time must not fill the memory

_PASSING = (Unavailable, Conflict, NotFound, Expired, TooManyRequests)


class Kind(IntEnum):
    """What a failure asks of the loop; where one reconcile failed in several ways, the highest counts."""

    INVALID = 1
    """The user must act: no retry until something changes."""
    PASSING = 2
    """The world moved or is away: retry, and warn once it lasts."""
    REFUSED = 3
    """Someone must act, but may do so where we do not see it (a role, a quota): warn, and retry."""
    BUG = 4
    """Ours: traceback, and retry."""
    NOT_LEADING = 5
    """Another process may be at work already: stop."""


def kind_of(error: Exception) -> Kind:
    """Which kind a single error is."""
    if isinstance(error, NotLeading):
        return Kind.NOT_LEADING
    if isinstance(error, InvalidSpec):
        return Kind.INVALID
    if isinstance(error, _PASSING):
        return Kind.PASSING
    return Kind.REFUSED if isinstance(error, RaykeeperError) else Kind.BUG


def chief_cause(error: Exception) -> Exception:
    """The error itself or, of a group raised by parallel work, the member of the highest kind."""
    return max(_leaves(error), key=kind_of)


def retry_after(error: Exception) -> float:
    """Seconds that the service which failed asked for; 0 where it did not."""
    return max(getattr(leaf, "retry_after", None) or 0.0 for leaf in _leaves(error))


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for member in error.exceptions:
            yield from _leaves(member)
    else:
        yield error


@dataclass
class _Trouble:
    passing_since: float | None = None
    told: set[str] = field(default_factory=set)


class Failures(Generic[K]):
    """The keys in trouble and what has been said about each; a key that is well takes no memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[K, _Trouble] = {}

    def __len__(self) -> int:
        return len(self._troubles)

    def is_news(self, key: K, error: Exception) -> bool:
        """Whether to tell about this failure: it is not the same as before, and has lasted if it may pass by itself."""
        trouble = self._troubles.setdefault(key, _Trouble())
        if not self._is_worth_telling(trouble, kind_of(error)):
            return False
        name = _identity(error)
        if name in trouble.told:
            return False
        if len(trouble.told) == _MOST_TOLD:
            trouble.told.clear()
        trouble.told.add(name)
        return True

    def is_over(self, key: K) -> bool:
        """The key is well again: forget its trouble. True if there was one that had been told."""
        trouble = self._troubles.pop(key, None)
        return trouble is not None and bool(trouble.told)

    def _is_worth_telling(self, trouble: _Trouble, kind: Kind) -> bool:
        if kind is not Kind.PASSING:
            trouble.passing_since = None
            return True
        now = self._clock.steady()
        if trouble.passing_since is None:
            trouble.passing_since = now
        return now - trouble.passing_since >= LASTING_SECONDS


def _identity(error: Exception) -> str:
    """What two failures have in common if they are the same: a bug its place, a passing one its kind, else the text."""
    kind = kind_of(error)
    if kind is Kind.PASSING:
        return kind.name
    if kind is Kind.BUG:
        # The text of a bug often holds a value that differs each time.
        place = traceback.extract_tb(error.__traceback__, limit=-1)
        return f"{type(error).__name__} {[(frame.filename, frame.lineno) for frame in place]}"
    return f"{type(error).__name__} {error}"
