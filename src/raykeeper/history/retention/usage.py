"""What each namespace has in the store: added up by whoever sweeps, read by everybody else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from raykeeper.history.store.records import DamagedRecord, find_record
from raykeeper.layout.keys import SessionId
from raykeeper.layout.records import encode_record
from raykeeper.layout.retention import MOST_NAMESPACES, USAGE_KEY, NamespaceUsage, SessionFacts, Usage
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

log = Log("raykeeper.history.retention")

_MOST_COUNTED = 50_000  # namespaces of which sums are held while sessions are looked at
OTHERS = "(others)"
"""No namespace can be called that."""


class _Sum:
    __slots__ = ("bytes", "held", "objects", "oldest", "sessions", "unmeasured")

    def __init__(self) -> None:
        self.sessions = self.bytes = self.objects = self.unmeasured = self.held = 0
        self.oldest: datetime | None = None

    def told(self, namespace: str) -> NamespaceUsage:
        return NamespaceUsage(
            namespace=namespace,
            sessions=self.sessions,
            bytes=self.bytes,
            objects=self.objects,
            unmeasured=self.unmeasured,
            held=self.held,
            oldest=self.oldest,
        )


class UsageCount:
    """Adds up sessions, a day at a time."""

    def __init__(self, held: frozenset[SessionId]) -> None:
        self._held = held
        self._held_names = frozenset(session.namespace for session in held)
        self._sums: dict[str, _Sum] = {}

    def add(self, sessions: Iterable[SessionFacts]) -> None:
        for facts in sessions:
            name = facts.namespace if facts.namespace in self._sums or len(self._sums) < _MOST_COUNTED else OTHERS
            total = self._sums.get(name)
            if total is None:
                total = self._sums[name] = _Sum()
            total.sessions += 1
            total.bytes += facts.bytes or 0
            total.objects += facts.objects
            total.unmeasured += facts.bytes is None
            if facts.namespace in self._held_names:
                total.held += facts.id in self._held
            if total.oldest is None or facts.started_at < total.oldest:
                total.oldest = facts.started_at

    def usage(self, now: datetime) -> Usage:
        """The largest first; beyond a bound they are told together."""
        told = [total.told(name) for name, total in self._sums.items() if name != OTHERS]
        told.sort(key=lambda one: (-one.bytes, -one.sessions, one.namespace))
        shown, rest = told[:MOST_NAMESPACES], told[MOST_NAMESPACES:]
        others = self._sums.get(OTHERS)
        rest += [others.told(OTHERS)] if others else []
        return Usage(as_of=now, namespaces=tuple(shown), left_out=len(rest), others=together(rest) if rest else None)


def together(some: Iterable[NamespaceUsage], name: str = OTHERS) -> NamespaceUsage:
    """Several namespaces as one."""
    total = NamespaceUsage(namespace=name)
    for one in some:
        total = msgspec.structs.replace(
            total,
            sessions=total.sessions + one.sessions,
            bytes=total.bytes + one.bytes,
            objects=total.objects + one.objects,
            unmeasured=total.unmeasured + one.unmeasured,
            held=total.held + one.held,
            oldest=min(filter(None, (total.oldest, one.oldest)), default=None),
        )
    return total


async def write_usage(store: ObjectStore, usage: Usage) -> None:
    await store.put(USAGE_KEY, encode_record(usage))


async def read_usage(store: ObjectStore) -> Usage | None:
    """What was added up last; None where nobody did."""
    try:
        return await find_record(store, USAGE_KEY, Usage)
    except DamagedRecord as exc:
        log.warning("what namespaces use cannot be read", key=USAGE_KEY, cause=str(exc))
        return None
