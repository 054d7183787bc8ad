"""Sessions as a list of all of them shows them, and their places in it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from raykeeper.history.answers import InvalidQuery
from raykeeper.layout.keys import SessionId
from raykeeper.layout.names import from_segment, to_segment
from raykeeper.layout.records import CatalogEnd, CatalogStart


@dataclass(frozen=True)
class CatalogEntry:
    """One session as a list shows it."""

    id: SessionId
    start: CatalogStart
    start_written: datetime
    end: CatalogEnd | None = None
    end_written: datetime | None = None

    @property
    def place(self) -> Place:
        return Place(self.start.started_at, self.id)

    @property
    def has_ended(self) -> bool:
        """The newest head said goodbye. One that begins later puts its own id into the entry's start."""
        if self.end is None or self.end_written is None:
            return False
        if self.end.head_node_id and self.start.head_node_id:
            return self.end.head_node_id == self.start.head_node_id
        return self.end_written >= self.start_written


@dataclass(frozen=True, order=True)
class Place:
    """Where in the list a session is."""

    started_at: datetime
    id: SessionId

    def __str__(self) -> str:
        """One word for a URL."""
        names = (self.id.namespace, self.id.cluster, self.id.session)
        return "~".join([self.started_at.astimezone(UTC).isoformat(), *map(to_segment, names)])


def parse_place(text: str) -> Place:
    """Raises InvalidQuery for what no page ever linked to."""
    try:
        started_at, *names = text.split("~")
        return Place(_aware(datetime.fromisoformat(started_at)), SessionId(*map(from_segment, names)))
    except (ValueError, TypeError) as exc:
        raise InvalidQuery(f"{quote(text)} is not a place in the list of sessions") from exc


@dataclass(frozen=True)
class Page:
    entries: tuple[CatalogEntry, ...]
    next_place: Place | None
    """Of the last entry, where there are more behind it."""
    unreadable: int
    """Entries of these days that could not be read; they are missing above."""


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
