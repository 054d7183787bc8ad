"""What somebody looks for, and where. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from raykeeper.history.logs.globs import matching_names
from raykeeper.layout.logs import StoredLog

Kind = Literal["error", "event", "log"]
KINDS: tuple[Kind, ...] = ("error", "event", "log")
EVENT_FOLDERS = ("events/", "export_events/")
"""Under `logs/`, where Ray's own components write down events, one a line."""

WORDS_CHARS = 200
"""Of a pattern; together with RE2, which never backtracks, it bounds what a line costs."""
CONTEXT_LINES, CONTEXT_LIMIT = 2, 10


@dataclass(frozen=True)
class Wanted:
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
        is_driver = bool(self.submission_id) and name == f"job-driver-{self.submission_id}.log"
        return is_driver or (bool(self.job_id) and f"-{self.job_id}-" in name)


@dataclass
class Skipped:
    """What could not be searched, and why: said with the hits, because an empty answer would else be taken for none."""

    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, reason: str) -> None:
        self.reasons.setdefault(what, reason)


def kind_of_file(path: str) -> Kind:
    return "event" if path.startswith(EVENT_FOLDERS) else "log"


def to_ns(time: datetime) -> int:
    """Nanoseconds since 1970."""
    return round(time.timestamp() * 1_000_000_000)
