"""Reads the summaries of sessions, each version of one once."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime

import msgspec

from raykeeper.history.entries import CatalogEntry
from raykeeper.layout.keys import CatalogKey
from raykeeper.layout.records import decode_record
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

_REMEMBERED_JOBS = 100_000  # about 1 KB each

log = Log("raykeeper.history.catalog")


class Summaries:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: OrderedDict[str, tuple[datetime, SessionSummary | None]] = OrderedDict()
        self._jobs = 0

    async def find(self, entry: CatalogEntry) -> SessionSummary | None:
        """The session's summary, if it has one that can be read."""
        if entry.summary_written is None:
            return None
        key = CatalogKey(entry.start.started_at.astimezone(UTC).date(), entry.id, "summary").key
        known = self._known.get(key)
        if known is None or known[0] != entry.summary_written:
            known = (entry.summary_written, _decoded(key, await self._store.find(key)))
            self._remember(key, known)
        self._known.move_to_end(key)
        return known[1]

    def _remember(self, key: str, known: tuple[datetime, SessionSummary | None]) -> None:
        before = self._known.pop(key, None)
        self._jobs += _weight(known) - (_weight(before) if before else 0)
        self._known[key] = known
        while self._jobs > _REMEMBERED_JOBS and len(self._known) > 1:
            self._jobs -= _weight(self._known.popitem(last=False)[1])


def _weight(known: tuple[datetime, SessionSummary | None]) -> int:
    return 1 + len(known[1].jobs) if known[1] else 1


def _decoded(key: str, data: bytes | None) -> SessionSummary | None:
    try:
        return decode_record(data, SessionSummary) if data else None
    except msgspec.DecodeError as exc:
        log.warning("summary cannot be read", key=key, cause=str(exc))
        return None
