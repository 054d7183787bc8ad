"""How many of the requests to a cluster failed lately, as Serve's proxies on its pods count them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from raykeeper.ray.serve import RequestCounts

WINDOW: Final = timedelta(seconds=60)
LEAST_REQUESTS: Final = 20
"""Fewer in a window say nothing: one that fails would be five percent or more."""
COUNTED_AFTER: Final = timedelta(seconds=20)
"""Ray's nodes collect their metrics every ten seconds, and we ask every five: so long after a step its requests count
for sure."""


@dataclass(frozen=True)
class Failures:
    """Requests to a cluster in the last minute."""

    answered: int = 0
    failed: int = 0
    counted_at: datetime | None = None
    """When the last of its pods was asked; None: not all of them have answered yet."""
    counted_since: datetime | None = None
    """When counting began: nothing is known of what was before."""
    trouble: str = ""
    """Why they cannot be counted."""

    def exceed(self, percent: float) -> bool:
        return self.answered >= LEAST_REQUESTS and self.failed * 100 > percent * self.answered

    def waits(self, moved_at: datetime | None) -> str:
        """Why it cannot be said yet how the requests since the last step went; empty: it can."""
        if self.trouble:
            return f"failed requests cannot be counted: {self.trouble}"
        begins = max((moment for moment in (moved_at, self.counted_since) if moment is not None), default=None)
        is_known = self.counted_at is not None and (begins is None or self.counted_at >= begins + COUNTED_AFTER)
        return "" if is_known else "it is not known yet how many requests failed since the last step"

    def __str__(self) -> str:
        return f"{self.failed} of the last {self.answered} requests were answered with an error of the server"


@dataclass
class RequestWindow:
    """What the pods of a cluster have counted, and when. Kept in memory: an operator that is started anew counts from
    its first look at each pod, since nobody knows how old is what was counted before.
    """

    _samples: dict[str, list[tuple[datetime, RequestCounts]]] = field(default_factory=dict)
    _since: datetime | None = None

    def note(self, pod: str, at: datetime, counts: RequestCounts) -> None:
        """What a pod has counted so far; what has been noted already may be noted again."""
        self._since = self._since or at
        samples = self._samples.setdefault(pod, [])
        if not samples or samples[-1][0] < at:
            samples.append((at, counts))

    def failures(self, now: datetime, pods: Collection[str]) -> Failures:
        """Of these pods; what was noted of others is forgotten."""
        self._samples = {pod: _recent(samples, now) for pod, samples in self._samples.items() if pod in pods}
        differences = [_difference(samples) for samples in self._samples.values()]
        latest = [samples[-1][0] for samples in self._samples.values()]
        return Failures(
            sum(one.answered for one in differences),
            sum(one.failed for one in differences),
            min(latest) if latest and len(latest) == len(pods) else None,
            self._since,
        )


def _recent(samples: list[tuple[datetime, RequestCounts]], now: datetime) -> list[tuple[datetime, RequestCounts]]:
    """Those of the window, and the last one before it, from which they count."""
    older = [one for one in samples if one[0] < now - WINDOW]
    return [*older[-1:], *samples[len(older) :]]


def _difference(samples: list[tuple[datetime, RequestCounts]]) -> RequestCounts:
    last, first = samples[-1][1], samples[0][1]
    if last.answered < first.answered:  # a proxy that was started anew
        return last
    return RequestCounts(last.answered - first.answered, max(0, last.failed - first.failed))
