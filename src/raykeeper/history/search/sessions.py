"""Searches one session, or many of them, newest first, as long as the budget lasts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.entities.job_list import find_job
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.search.log_lines import LineHit, LogSearch, Step, behind_hit, passed_bytes
from raykeeper.history.search.match import Matcher
from raykeeper.history.search.model import (
    Budget,
    Hit,
    InSession,
    Line,
    LogPlace,
    RecordPlace,
    SearchPlace,
    SearchRequest,
    Skipped,
    kind_of_file,
)
from raykeeper.history.search.passages import excerpt, passage_of
from raykeeper.history.search.records import KIND_OF, Record, find_records
from raykeeper.history.store.catalog_entries import CatalogEntry, Place, SessionFilter, parse_place
from raykeeper.history.text import without_ansi
from raykeeper.history.urls import job_path, log_path, overview_path, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.masking import masked_lines, masked_text
from raykeeper.times import from_ns


@dataclass
class SessionSearch:
    """One search in one session."""

    history: History
    session: SessionId
    wanted: SearchRequest
    matcher: Matcher
    budget: Budget
    skipped: Skipped

    async def run(self, start: InSession | None = None) -> InSession | None:
        """Search from a place on; where to go on, or None at the end."""
        async with self.history.logs.searches:
            if not isinstance(start, LogPlace):
                place = await self._records(start)
                if place is not None:
                    return place
                start = None
            return await self._lines(start) if self.wanted.wants_logs else None

    async def progress(self, place: InSession | None) -> tuple[int, int]:
        """Bytes of packs before a place, and all of them; without a place the search is at its end."""
        if not self.wanted.wants_logs:
            return 0, 0
        packs, nodes = await self.history.logs.packs(self.session), await self._logs().node_ids()
        total = passed_bytes(packs, nodes, None)
        if isinstance(place, RecordPlace):
            return 0, total
        is_begun = place is None or place.node_id
        return passed_bytes(packs, nodes, place) if is_begun else 0, total

    def _logs(self) -> LogSearch:
        return LogSearch(self.history.logs, self.session, self.wanted, self.matcher, self.skipped)

    async def _records(self, after: RecordPlace | None) -> RecordPlace | LogPlace | None:
        """Where to go on if the budget ends among errors and events, or right behind them."""
        if not {"error", "event"} & self.wanted.kinds or self.wanted.files:
            return None
        context = await self.history.open(self.session)
        self._tell_partial(context)
        while True:  # at least once, however long opening took: a search that goes on must come to its end
            limit = max(1, self.budget.room)
            found = await find_records(context, self.wanted, self.matcher, after, limit, self.skipped)
            self.budget.hits += (hit for record in found if (hit := self._of_record(record)))
            if len(found) < limit:
                is_at_end = not self.wanted.wants_logs
                return LogPlace() if self.budget.is_over and not is_at_end else None
            after = found[-1].place
            if self.budget.is_over:
                return after

    def _tell_partial(self, context: SessionContext) -> None:
        session = context.session
        if not session.progress.is_done:
            done, total = session.progress.done_bytes, session.progress.total_bytes
            self.skipped.add(f"session {session.id}", f"its events are still being read: {100 * done // total} % are")
        for gap in session.gaps:
            self.skipped.add(gap.key, gap.reason)

    async def _lines(self, start: LogPlace | None) -> LogPlace | None:
        at = start
        async with aclosing(self._logs().steps(start)) as steps:
            async for step in steps:
                place = await self._take(step, start)
                if place is not None:
                    return place
                at = step.behind
                if self.budget.is_over or at is None:
                    return at
        return None

    async def _take(self, step: Step, start: LogPlace | None) -> LogPlace | None:
        """Keep the hits of a step; where to go on within it, if there are too many."""
        hits = behind_hit(step.hits, start) if start else step.hits
        for number, hit in enumerate(hits):
            shown = await self._of_line(hit)
            if shown is not None:
                self.budget.hits.append(shown)
            if self.budget.is_over and number + 1 < len(hits):
                return _replace_hit(step.place, hit)
        return None

    def _of_record(self, record: Record) -> Hit | None:
        """The first line of a message that is a hit also without secrets."""
        texts = masked_lines(without_ansi(record.message).split("\n"))
        for place, text in enumerate(texts):
            at = self.matcher.first_in(text)
            if at is not None:
                return self._record_hit(record, texts, place, at)
        return None

    def _record_hit(self, record: Record, texts: Sequence[str], place: int, at: int) -> Hit:
        first, last = max(0, place - self.wanted.context), place + self.wanted.context + 1
        lines = tuple(
            Line(offset=number, text=excerpt(text, at if number == place else 0), is_hit=number == place)
            for number, text in enumerate(texts[first:last], first)
        )
        return Hit(
            kind=KIND_OF[record.what],
            what=record.what,
            title=masked_text(record.title),
            namespace=self.session.namespace,
            cluster=self.session.cluster,
            session=self.session.session,
            job_id=record.job_id,
            node_id=record.node_id,
            generation="",
            at=record.at,
            count=record.count,
            lines=lines,
            path=_record_path(self.session, record),
        )

    async def _of_line(self, hit: LineHit) -> Hit | None:
        passage = await passage_of(hit.span, hit.run, self.history.logs.reader, self.matcher, self.wanted.context)
        if passage is None:
            return None
        stored, read_ns = hit.run.stored, _read_ns(hit)
        return Hit(
            kind=kind_of_file(stored.path),
            what="log",
            title=stored.path,
            namespace=self.session.namespace,
            cluster=self.session.cluster,
            session=self.session.session,
            job_id="",
            node_id=hit.node_id,
            generation=stored.generation,
            at=from_ns(read_ns),
            count=1,
            lines=tuple(Line(offset=line.offset, text=line.text, is_hit=line.is_hit) for line in passage),
            path=log_path(self.session, hit.node_id, stored.path, stored.generation, hit.span[0]),
        )


async def with_job(history: History, session: SessionId, wanted: SearchRequest, job: str) -> SearchRequest:
    """The same for one job, by either of its ids. Raises JobUnknown."""
    found = await find_job(await history.open(session), job)
    return replace(wanted, job_id=found.job_id or "", submission_id=found.submission_id or "")


def _replace_hit(place: LogPlace, hit: LineHit) -> LogPlace:
    """The same place, behind this hit."""
    return LogPlace(place.node_id, place.pack, place.position, hit.run.stored.generation, hit.span[0])


def _record_path(session: SessionId, record: Record) -> str:
    """Where more is said about what a message is about: on our own pages, or in Ray's dashboard."""
    if record.what == "job":
        return job_path(session, record.id)
    pages = {
        "task": f"#/tasks/{record.id.rpartition('-')[0]}",
        "actor": f"#/actors/{record.id}",
        "node": f"#/cluster/nodes/{record.id}",
    }
    return f"{session_path(session)}{pages[record.what]}" if record.what in pages else overview_path(session)


def _read_ns(hit: LineHit) -> int:
    """When the collector read the beginning of the line."""
    at = hit.span[0]
    frames = (frame for _, frame in hit.run.stored.frames)
    return min((one.read_ns for one in frames if one.offset <= at < one.offset + max(1, one.length)), default=0)


_PAGE = 50  # of the catalog's entries at a time


@dataclass
class SessionsSearch:
    """One search in the sessions that a filter leaves."""

    history: History
    within: SessionFilter
    wanted: SearchRequest
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
            entry = await self.history.catalog.find(after.id)
            place = await self._search(entry, start.inside) if entry else None
            if place is not None or self.budget.is_over:
                return SearchPlace(place, str(after))
        return await self._behind(after)

    async def _behind(self, after: Place | None) -> SearchPlace | None:
        while True:
            page = await self.history.catalog.page(_PAGE, after, self.within)
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
        search = SessionSearch(self.history, entry.id, self.wanted, self.matcher, self.budget, self.skipped)
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
