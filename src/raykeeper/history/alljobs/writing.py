"""Writes the summary of a session once it is final, so that lists of jobs need not open it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

import msgspec

from raykeeper.errors import RaykeeperError
from raykeeper.history.alljobs.summarizing import SUMMARY_VERSION, summarize
from raykeeper.history.asked import Asked
from raykeeper.history.opened import OpenedSession
from raykeeper.layout.keys import CatalogKey, SessionId
from raykeeper.layout.records import decode_record, encode_record
from raykeeper.layout.summaries import SessionSummary
from raykeeper.logs import Log
from raykeeper.storage.store import ObjectStore

_REMEMBERED = 10_000
log = Log("raykeeper.history")


class SummaryWriter:
    """Any replica may write a summary, whenever it opens a session that is final: all of them write the same."""

    def __init__(self, store: ObjectStore, ask: Callable[[OpenedSession], Asked]) -> None:
        self._store = store
        self._ask = ask
        self._written: OrderedDict[SessionId, datetime] = OrderedDict()

    async def write(self, session: OpenedSession) -> bool:
        """Have the summary of a final session in the catalog; whether it was not there.

        A store that cannot take it now gets it another time.
        """
        if session.record is None or self._written.get(session.id) == session.as_of:
            return False
        key = CatalogKey(session.record.started_at.date(), session.id, "summary").key
        try:
            is_new = not await self._is_there(key, session.as_of)
            if is_new:
                summary = await summarize(self._ask(session))
                await self._store.put(key, encode_record(summary))
                log.info("session summarized", session=str(session.id), jobs=len(summary.jobs))
        except RaykeeperError as exc:
            log.warning("session could not be summarized", session=str(session.id), error=str(exc))
            return False
        self._written[session.id] = session.as_of
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        return is_new

    async def _is_there(self, key: str, as_of: datetime) -> bool:
        data = await self._store.find(key)
        try:
            known = decode_record(data, SessionSummary) if data else None
        except msgspec.DecodeError:
            return False
        return known is not None and (known.version, known.as_of) == (SUMMARY_VERSION, as_of)
