"""Takes the State API's lists: tasks, actors and the rest, also where there are more than Ray answers at once."""

from __future__ import annotations

import msgspec

from raykeeper.collector.capture.answers import AnswerTaker, Tally
from raykeeper.collector.capture.pages import KINDS, MAX_ROWS, Page, Row, parse_rows

MAX_PAGES = 2_000  # of one kind: beyond that a capture would keep the head busy for hours


class StateTaker:
    """Takes one kind after the other, and remembers the ids of jobs for splitting."""

    def __init__(self, taker: AnswerTaker, tally: Tally, max_rows: int = MAX_ROWS) -> None:
        self._taker = taker
        self._tally = tally
        self._max_rows = max_rows
        self._jobs: list[str] = []

    async def take_nodes(self) -> list[Row]:
        """Store the lists of jobs and nodes; returns the rows of nodes."""
        self._jobs = [str(row["job_id"]) for row in await self._take_kind("jobs") if row.get("job_id")]
        return await self._take_kind("nodes")

    async def take_rest(self) -> None:
        """Store all other lists. Assumes `take_nodes` before it."""
        for kind in KINDS:
            if kind not in ("jobs", "nodes"):
                await self._take_kind(kind)

    async def _take_kind(self, kind: str) -> list[Row]:
        """The first page's rows; further pages are stored and only counted."""
        waiting, first = [Page(kind, max_rows=self._max_rows)], None
        for _ in range(MAX_PAGES):
            if not waiting:
                break
            page = waiting.pop()
            rows = await self._take_page(page)
            first = rows if first is None else first
            if len(rows) >= self._max_rows:
                waiting += self._parts(page, rows)
        if waiting:
            self._tally.gaps.append(f"{kind}: more than {MAX_PAGES} pages")
        return first or []

    async def _take_page(self, page: Page) -> list[Row]:
        answer = await self._taker.take(page.path, is_needed=True)
        if answer is None:
            return []
        try:
            found = parse_rows(answer.body)
        except msgspec.DecodeError as exc:
            self._tally.gaps.append(f"{page.path}: {exc}")
            return []
        if found.warning:
            self._tally.gaps.append(f"{page.path}: {found.warning}")
        if len(found.rows) < self._max_rows:
            self._tally.rows += len(found.rows)
        return found.rows

    def _parts(self, page: Page, rows: list[Row]) -> list[Page]:
        """Where to find the rows behind a full page; a gap if that is nowhere."""
        parts = page.parts(rows, self._jobs)
        if not parts:
            self._tally.rows += len(rows)
            self._tally.gaps.append(f"{page.path}: only the first {len(rows)} rows")
        elif page.has_open_values:
            self._tally.gaps.append(f"{page.path}: only the values of {page.next_column} in its first {len(rows)} rows")
        return parts
