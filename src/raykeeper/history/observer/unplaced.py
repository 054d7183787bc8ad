"""Events about something that was not seen yet: kept for a while, since watches are not in step with each other."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from raykeeper.layout.kube_facts import EventFact

KINDS: Final = frozenset({"Pod", "RayCluster", "RayJob", "RayService"})
"""What a Ray cluster's Events are about."""
HOLD_SECONDS = 300.0  # a RayJob's first Events come before its cluster is made, and a quota may hold that up
MOST_EVENTS = 5_000  # most are about pods that have nothing to do with Ray; some 5 MB


class Unplaced:
    """The newest of such Events, by the uid they are about. What falls out is most likely nothing of ours."""

    def __init__(self) -> None:
        self._events: OrderedDict[str, tuple[float, EventFact]] = OrderedDict()
        self._about: dict[str, dict[str, None]] = {}

    def hold(self, event: EventFact, steady: float) -> None:
        """Keep an Event that has no cluster yet."""
        self._drop(event.uid)
        self._events[event.uid] = steady, event
        self._about.setdefault(event.about_uid, {})[event.uid] = None
        while len(self._events) > MOST_EVENTS or self._oldest() < steady - HOLD_SECONDS:
            self._drop(next(iter(self._events)))

    def take(self, about_uid: str) -> list[EventFact]:
        """The Events about something that is known from now on."""
        uids = list(self._about.get(about_uid, ()))
        taken = [self._events[uid][1] for uid in uids]
        for uid in uids:
            self._drop(uid)
        return taken

    def _oldest(self) -> float:
        return next(iter(self._events.values()))[0]

    def _drop(self, uid: str) -> None:
        held = self._events.pop(uid, None)
        if held is None:
            return
        about = self._about[held[1].about_uid]
        about.pop(uid)
        if not about:
            del self._about[held[1].about_uid]

    def __len__(self) -> int:
        return len(self._events)
