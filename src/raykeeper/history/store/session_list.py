"""The list of sessions with their states, a page at a time: the catalog says which there are, heartbeats which run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from raykeeper.history.store.catalog import EVERY_SESSION, Catalog
from raykeeper.history.store.catalog_entries import CatalogEntry, Order, Place, SessionFilter
from raykeeper.history.store.heartbeats import Heartbeats
from raykeeper.history.store.session_state import SessionState, State, listed_state
from raykeeper.layout.summaries import SessionSummary

_LOOKS_AT_ONCE = 16
_ROUNDS = 10  # pages of the catalog that are looked through for sessions of one state


@dataclass(frozen=True)
class SessionsRequest:
    """What is asked of the list."""

    limit: int
    after: Place | None = None
    within: SessionFilter = EVERY_SESSION
    state: State | None = None
    order: Order = "newest"


@dataclass(frozen=True)
class SessionRow:
    entry: CatalogEntry
    life: SessionState
    summary: SessionSummary | None = None
    """How it went; None where nobody has read it to its end yet."""
    is_held: bool = False
    """Somebody holds it: it is not removed, whatever its age."""

    @property
    def state(self) -> State:
        return self.life.state


@dataclass(frozen=True)
class SessionRows:
    rows: tuple[SessionRow, ...]
    next_place: Place | None
    """Of the last session that was looked at, where there are more behind it."""
    unreadable: int
    """Entries of the catalog that could not be read."""
    is_cut: bool
    """Few are as wanted, and not all were looked at: more may be behind `next_place`."""


class SessionList:
    """All sessions of a store."""

    def __init__(self, catalog: Catalog, heartbeats: Heartbeats) -> None:
        self._catalog = catalog
        self._heartbeats = heartbeats

    async def rows(self, wanted: SessionsRequest) -> SessionRows:
        """The first sessions of those wanted."""
        rows, unreadable, after = list[SessionRow](), 0, wanted.after
        for _ in range(_ROUNDS):
            page = await self._catalog.page(wanted.limit, after, wanted.within, wanted.order)
            unreadable += page.unreadable
            found = await self._with_states(page.entries)
            for place, row in enumerate(found, 1):
                if wanted.state in (None, row.state):
                    rows.append(row)
                if len(rows) == wanted.limit:
                    has_more = place < len(found) or page.next_place is not None
                    return SessionRows(tuple(rows), row.entry.place if has_more else None, unreadable, is_cut=False)
            after = page.next_place
            if after is None or page.is_cut:
                return SessionRows(tuple(rows), after, unreadable, is_cut=page.is_cut)
        return SessionRows(tuple(rows), after, unreadable, is_cut=True)

    async def state_of(self, entry: CatalogEntry) -> SessionState:
        """From the catalog alone for a session whose head wrote its end; nodes' records tell of the rest."""
        if entry.end and entry.has_ended:
            return listed_state(entry.end)
        return await self._heartbeats.state(entry.id, entry.start.head_node_id)

    async def row_of(self, entry: CatalogEntry) -> SessionRow:
        is_held = entry.id in await self._catalog.removals.held()
        return SessionRow(entry, await self.state_of(entry), await self._catalog.summaries.find(entry), is_held)

    async def _with_states(self, entries: tuple[CatalogEntry, ...]) -> list[SessionRow]:
        looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def row(entry: CatalogEntry) -> SessionRow:
            async with looks:
                return await self.row_of(entry)

        return await asyncio.gather(*map(row, entries))
