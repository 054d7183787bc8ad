"""Searches one session as long as the budget lasts: errors and events, of which there are few, then log lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from raykeeper.history.asked import Asked
from raykeeper.history.opened import OpenedSession
from raykeeper.history.overview.job import find_job
from raykeeper.history.pages.addresses import job_path, log_path, overview_path, session_path
from raykeeper.history.parts import Parts
from raykeeper.history.search.asking import Skipped, Wanted, kind_of_file
from raykeeper.history.search.budget import Budget
from raykeeper.history.search.loglines import LineHit, LogSearch, Step, behind_hit, passed_bytes
from raykeeper.history.search.matching import Matcher
from raykeeper.history.search.model import Hit, Line
from raykeeper.history.search.passages import excerpt, masked_lines, passage_of, without_colours
from raykeeper.history.search.places import InSession, LogPlace, RecordPlace
from raykeeper.history.search.records import KIND_OF, Record, find_records
from raykeeper.history.secretpatterns import masked_text
from raykeeper.layout.keys import SessionId


@dataclass
class SessionSearch:
    """One search in one session."""

    parts: Parts
    session: SessionId
    wanted: Wanted
    matcher: Matcher
    budget: Budget
    skipped: Skipped

    async def run(self, start: InSession | None = None) -> InSession | None:
        """Search from a place on; where to go on, or None at the end."""
        async with self.parts.logs.searches:
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
        packs, nodes = await self.parts.logs.packs(self.session), await self._logs().node_ids()
        total = passed_bytes(packs, nodes, None)
        if isinstance(place, RecordPlace):
            return 0, total
        is_begun = place is None or place.node_id
        return passed_bytes(packs, nodes, place) if is_begun else 0, total

    def _logs(self) -> LogSearch:
        return LogSearch(self.parts.logs, self.session, self.wanted, self.matcher, self.skipped)

    async def _records(self, after: RecordPlace | None) -> RecordPlace | LogPlace | None:
        """Where to go on if the budget ends among errors and events, or right behind them."""
        if not {"error", "event"} & self.wanted.kinds or self.wanted.files:
            return None
        asked = await self.parts.ask(self.session)
        self._tell_partial(asked)
        while True:  # at least once, however long opening took: a search that goes on must come to its end
            limit = max(1, self.budget.room)
            found = await find_records(asked, self.wanted, self.matcher, after, limit, self.skipped)
            self.budget.hits += (hit for record in found if (hit := self._of_record(record)))
            if len(found) < limit:
                is_at_end = not self.wanted.wants_logs
                return LogPlace() if self.budget.is_over and not is_at_end else None
            after = found[-1].place
            if self.budget.is_over:
                return after

    def _tell_partial(self, asked: Asked) -> None:
        session = asked.session
        if not isinstance(session, OpenedSession):
            return
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
                return replace_hit(step.place, hit)
        return None

    def _of_record(self, record: Record) -> Hit | None:
        """The first line of a message that is a hit also without secrets."""
        texts = masked_lines(without_colours(record.message).split("\n"))
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
            path=record_path(self.session, record),
        )

    async def _of_line(self, hit: LineHit) -> Hit | None:
        passage = await passage_of(hit.span, hit.run, self.parts.logs.reader, self.matcher, self.wanted.context)
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
            at=datetime.fromtimestamp(read_ns / 1e9, UTC),
            count=1,
            lines=tuple(Line(offset=line.offset, text=line.text, is_hit=line.is_hit) for line in passage),
            path=log_path(self.session, hit.node_id, stored.path, stored.generation, hit.span[0]),
        )


async def with_job(parts: Parts, session: SessionId, wanted: Wanted, job: str) -> Wanted:
    """The same for one job, by either of its ids. Raises JobUnknown."""
    found = await find_job(await parts.ask(session), job)
    return replace(wanted, job_id=found.get("job_id") or "", submission_id=found.get("submission_id") or "")


def replace_hit(place: LogPlace, hit: LineHit) -> LogPlace:
    """The same place, behind this hit."""
    return LogPlace(place.node_id, place.pack, place.position, hit.run.stored.generation, hit.span[0])


def record_path(session: SessionId, record: Record) -> str:
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
