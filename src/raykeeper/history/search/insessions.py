"""Searches many sessions, the newest first, one after the other, as long as the budget lasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.entries import CatalogEntry, Place, SessionFilter, parse_place
from raykeeper.history.parts import Parts
from raykeeper.history.search.asking import Skipped, Wanted
from raykeeper.history.search.budget import Budget
from raykeeper.history.search.insession import SessionSearch
from raykeeper.history.search.matching import Matcher
from raykeeper.history.search.places import InSession, SearchPlace

_PAGE = 50  # of the catalog's entries at a time


@dataclass
class SessionsSearch:
    """One search in the sessions that a filter leaves."""

    parts: Parts
    within: SessionFilter
    wanted: Wanted
    matcher: Matcher
    budget: Budget
    skipped: Skipped
    searched: int = 0
    """Sessions that were searched to their end."""
    back_to: datetime | None = None
    """When the session looked at last had started."""

    async def run(self, start: SearchPlace | None = None) -> SearchPlace | None:
        """Search from a place on; where to go on, or None at the end. Raises InvalidQuery for no place."""
        after = parse_place(start.session) if start and start.session else None
        if after and start and start.inside:
            entry = await self.parts.catalog.find(after.id)
            place = await self._search(entry, start.inside) if entry else None
            if place is not None or self.budget.is_over:
                return SearchPlace(place, str(after))
        return await self._behind(after)

    async def _behind(self, after: Place | None) -> SearchPlace | None:
        while True:
            page = await self.parts.catalog.page(_PAGE, after, self.within)
            if page.unreadable:
                self.skipped.add("the list of sessions", f"{page.unreadable} of its entries cannot be read")
            for entry in page.entries:
                inside, after = await self._search(entry, None), entry.place
                if inside is not None or self.budget.is_over:
                    return SearchPlace(inside, str(after))
            after = page.next_place
            if after is None:
                return None
            if self.budget.is_over:
                return SearchPlace(None, str(after))

    async def _search(self, entry: CatalogEntry, inside: InSession | None) -> InSession | None:
        """One session. One that cannot be read is said and passed over; a store that does not answer ends all."""
        self.back_to = entry.start.started_at
        search = SessionSearch(self.parts, entry.id, self.wanted, self.matcher, self.budget, self.skipped)
        try:
            place = await search.run(inside)
        except Unavailable:
            raise
        except RaykeeperError as exc:
            self.skipped.add(f"session {entry.id}", str(exc))
            return None
        if place is None:
            self.searched += 1
        return place
