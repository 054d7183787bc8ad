"""Sessions as a list of all of them shows them, their places in it, and which of them are wanted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from urllib.parse import quote

from raykeeper.history.errors import InvalidQuery
from raykeeper.layout.keys import SessionId
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.records import CatalogEnd, CatalogStart, is_usable_time

Order = Literal["newest", "oldest"]
"""By the start of a session."""


@dataclass(frozen=True)
class CatalogEntry:
    """One session as a list shows it."""

    id: SessionId
    start: CatalogStart
    start_written: datetime
    end: CatalogEnd | None = None
    end_written: datetime | None = None
    summary_written: datetime | None = None
    """When somebody read the session to its end and wrote down what was in it."""

    @property
    def place(self) -> Place:
        return Place(self.start.started_at, self.id)

    @property
    def has_ended(self) -> bool:
        """The newest head ended. Whoever goes on, another head or its collector restarted alone, writes the start."""
        if self.end is None or self.end_written is None:
            return False
        heads = {self.end.head_node_id, self.start.head_node_id} - {""}
        return len(heads) <= 1 and self.end_written >= self.start_written

    @property
    def owner(self) -> str:
        """Kind and name of what made the cluster; empty where nothing did."""
        return f"{self.start.owner_kind} {self.start.owner_name}".strip()


@dataclass(frozen=True)
class SessionFilter:
    """Which sessions are wanted; what is empty leaves out none."""

    namespace: str = ""
    cluster: str = ""
    owner: str = ""
    """Name of the RayJob or RayService."""
    since: datetime | None = None
    """Started then or later."""
    until: datetime | None = None
    """Started before."""
    text: str = ""
    """Words that are all somewhere in the names, whatever their case."""

    def matches(self, entry: CatalogEntry) -> bool:
        start = entry.start
        return (
            self.namespace in ("", start.namespace)
            and self.cluster in ("", start.cluster)
            and self.owner in ("", start.owner_name)
            and (self.since is None or start.started_at >= self.since)
            and (self.until is None or start.started_at < self.until)
            and (not self.text or has_words(self.text, start.namespace, start.cluster, start.session, entry.owner))
        )

    def may_have_day(self, day: date) -> bool:
        """Whether a session that started on this day may match."""
        return (self.since is None or day >= self.since.astimezone(UTC).date()) and (
            self.until is None or day <= self.until.astimezone(UTC).date()
        )


def has_words(text: str, *names: str) -> bool:
    """Whether every word is in one of the names, whatever their case."""
    within = "\n".join(names).casefold()
    return all(word in within for word in text.casefold().split())


@dataclass(frozen=True, order=True)
class Place:
    """Where in the list a session is."""

    started_at: datetime
    id: SessionId

    def __str__(self) -> str:
        """One word for a URL."""
        names = (self.id.namespace, self.id.cluster, self.id.session)
        return "~".join([self.started_at.astimezone(UTC).isoformat(), *map(to_segment, names)])

    def is_behind(self, other: Place, order: Order) -> bool:
        return self < other if order == "newest" else self > other


_NOBODY = SessionId("-", "-", "-")
"""Sorts before every session: no name in Kubernetes begins with a hyphen."""


def end_of_day(day: date, order: Order) -> Place:
    """Behind all sessions of a day, and named after none of them: whoever gets it may not see the last one."""
    last = day if order == "newest" else day + timedelta(days=1)
    return Place(datetime.combine(last, time.min, UTC), _NOBODY)


def parse_place(text: str) -> Place:
    """Raises InvalidQuery for what no page ever linked to."""
    try:
        started_at, *names = text.split("~")
        return Place(_aware(datetime.fromisoformat(started_at)), SessionId(*map(from_segment, names)))
    except (ValueError, TypeError, OverflowError) as exc:
        raise InvalidQuery(f"{quote(text)} is not a place in the list of sessions") from exc


@dataclass(frozen=True)
class Page:
    entries: tuple[CatalogEntry, ...]
    next_place: Place | None
    """Of the last entry that was looked at, where there are more behind it."""
    unreadable: int
    """Entries of these days that could not be read; they are missing above."""
    is_cut: bool = False
    """Few match, so that not all were looked at: those behind `next_place` may match too."""


def _aware(moment: datetime) -> datetime:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not is_usable_time(aware):
        raise ValueError("no session started then")
    return aware
