"""A search as it is requested and answered: what is searched for, how far, and where the next part begins."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from raykeeper.history.entities.job import driver_log_name
from raykeeper.history.errors import InvalidQuery
from raykeeper.history.logs.names import matching_names
from raykeeper.layout.logs import StoredLog
from raykeeper.times import to_ns

Kind = Literal["error", "event", "log"]
KINDS: tuple[Kind, ...] = ("error", "event", "log")
EVENT_FOLDERS = ("events/", "export_events/")
"""Under `logs/`, where Ray's own components write down events, one a line."""

WORDS_CHARS = 200
"""Of a pattern; together with RE2, which never backtracks, it bounds what a line costs."""
CONTEXT_LINES, CONTEXT_LIMIT = 2, 10


@dataclass(frozen=True)
class SearchRequest:
    """What is looked for. Whatever is empty leaves out nothing."""

    words: str
    is_regex: bool = False
    ignores_case: bool = False
    kinds: frozenset[Kind] = frozenset(KINDS)
    node_id: str = ""
    """The beginning of it is enough."""
    files: str = ""
    """A pattern for paths under `logs/`; one without a slash is for names in any folder."""
    job_id: str = ""
    """Its errors, and what its own workers and driver printed."""
    submission_id: str = ""
    """Of the same job."""
    since: datetime | None = None
    until: datetime | None = None
    context: int = CONTEXT_LINES
    """Lines shown before and after each hit."""

    @property
    def wants_logs(self) -> bool:
        return bool({"log", "event"} & self.kinds)

    def has_node(self, node_id: str) -> bool:
        return node_id.startswith(self.node_id)

    def files_of(self, logs: Iterable[StoredLog]) -> list[StoredLog]:
        """Those whose lines are wanted. Raises InvalidPattern."""
        named = [stored for stored in logs if stored.path and self._has_kind(stored.path)]
        of_job = [stored for stored in named if self._has_job(stored.path)]
        if not self.files:
            return of_job
        pattern = self.files if "/" in self.files else f"**/{self.files}"
        matching = frozenset(matching_names((stored.path for stored in of_job), pattern))
        return [stored for stored in of_job if stored.path in matching]

    def has_time(self, began_ns: int, ended_ns: int) -> bool:
        """Whether anything between these two moments is wanted."""
        is_late_enough = self.since is None or ended_ns >= to_ns(self.since)
        return is_late_enough and (self.until is None or began_ns < to_ns(self.until))

    def _has_kind(self, path: str) -> bool:
        return kind_of_file(path) in self.kinds

    def _has_job(self, path: str) -> bool:
        if not (self.job_id or self.submission_id):
            return True
        name = path.rpartition("/")[2]
        is_driver = bool(self.submission_id) and name == driver_log_name(self.submission_id)
        return is_driver or (bool(self.job_id) and f"-{self.job_id}-" in name)


@dataclass
class Skipped:
    """What could not be searched, and why: said with the hits, because an empty answer would else be taken for none."""

    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, reason: str) -> None:
        self.reasons.setdefault(what, reason)


def kind_of_file(path: str) -> Kind:
    return "event" if path.startswith(EVENT_FOLDERS) else "log"


_BITS = 63  # of the numbers in a place: larger ones come from nobody's offsets and times


class RecordPlace(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    """Behind this error or event."""

    ns: int
    id: str


class LogPlace(msgspec.Struct, frozen=True, array_like=True, tag="log"):
    """At this frame of this pack of a node; behind a hit where the frame's batch had more hits than a page."""

    node_id: str = ""
    pack: str = ""
    position: int = 0
    generation: str = ""
    offset: int = -1


InSession = RecordPlace | LogPlace


class SearchPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where in which session."""

    inside: InSession | None = None
    """None at the session's beginning."""
    session: str = ""
    """Its place in the list of sessions, in a search of many."""

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()


def parse_search_place(text: str) -> SearchPlace:
    """Raises InvalidQuery for what no answer ever named."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
        place = msgspec.msgpack.decode(packed, type=SearchPlace)
    except (msgspec.DecodeError, binascii.Error, ValueError) as exc:
        raise InvalidQuery("this is not a place in a search") from exc
    numbers = (place.inside.ns,) if isinstance(place.inside, RecordPlace) else ()
    if any(abs(number) >> _BITS for number in numbers):
        raise InvalidQuery("this is not a place in a search")
    return place


@dataclass
class Budget:
    """The hits found so far, and whether there is time and room for more."""

    limit: int
    seconds: float
    hits: list[Hit] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def room(self) -> int:
        return self.limit - len(self.hits)

    @property
    def is_over(self) -> bool:
        return self.room <= 0 or not time.monotonic() - self.began < self.seconds  # so that no number is for ever


class Line(msgspec.Struct, frozen=True, kw_only=True):
    offset: Annotated[int, Meta(description="Of its first byte in the file; in a message, the line's number.")]
    text: str
    is_hit: bool


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One line that was found, with those around it."""

    kind: Kind
    what: Annotated[str, Meta(description="What said it: task, actor, job, worker, node, Kubernetes, or a log.")]
    title: Annotated[str, Meta(description="Whose message it is, or the path of the file under `logs/`.")]
    namespace: str
    cluster: str
    session: str
    job_id: str
    node_id: str
    generation: Annotated[str, Meta(description="Tells apart files that had this path one after the other.")]
    at: Annotated[
        datetime | None, Meta(description="Of a message, when it came; of a log, when the collector read the line.")
    ]
    count: Annotated[int, Meta(description="How often the same message came.")]
    lines: tuple[Line, ...]
    path: Annotated[str, Meta(description="Of the page on this server that shows more of it.")]


class Unsearched(msgspec.Struct, frozen=True, kw_only=True):
    """Something that should have been searched and could not be."""

    what: str
    reason: str


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found in the time it had."""

    hits: tuple[Hit, ...]
    next: Annotated[str | None, Meta(description="For `after`, to go on; null where all was searched.")]
    complete: Annotated[bool, Meta(description="All of the session was searched.")]
    scanned_bytes: Annotated[int, Meta(description="Of log packs, as stored, that lie behind the search.")]
    total_bytes: Annotated[int, Meta(description="Of all log packs of the nodes asked for.")]
    unsearched: tuple[Unsearched, ...]


class SessionsSearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search through many sessions found in the time it had."""

    hits: tuple[Hit, ...]
    next: Annotated[str | None, Meta(description="For `after`, to go on; null where all was searched.")]
    complete: Annotated[bool, Meta(description="All sessions asked for were searched.")]
    searched_sessions: Annotated[int, Meta(description="Sessions that this part of the search came to the end of.")]
    searched_back_to: Annotated[datetime | None, Meta(description="When the last session looked at had started.")]
    unsearched: tuple[Unsearched, ...]


def unsearched_of(skipped: Skipped) -> tuple[Unsearched, ...]:
    return tuple(Unsearched(what=what, reason=reason) for what, reason in skipped.reasons.items())
