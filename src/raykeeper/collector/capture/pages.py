"""The State API's lists, page by page: what to ask for next, from what an answer shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from raykeeper.rayevents.states import ACTOR_STATES, TASK_STATES

MAX_ROWS = 10_000
"""Ray answers no more at once, whatever is asked for."""
KINDS = ("tasks", "actors", "jobs", "nodes", "workers", "placement_groups", "objects", "runtime_envs")
SPLITS: Mapping[str, tuple[str, ...]] = {
    "tasks": ("job_id", "state", "name"),
    "actors": ("job_id", "state", "class_name"),
    "objects": ("reference_type",),
    "workers": ("worker_type",),
}
"""Columns by which a list that is too long is asked for in parts, one after the other."""
_STATES = {"tasks": TASK_STATES, "actors": ACTOR_STATES}
Row = dict[str, Any]
Filters = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """One list to ask for: all rows of a kind that match the filters."""

    kind: str
    filters: Filters = ()
    max_rows: int = MAX_ROWS

    @property
    def path(self) -> str:
        parts = [f"/api/v0/{self.kind}?detail=1&limit={self.max_rows}"]
        for column, value in self.filters:
            parts.append(f"filter_keys={column}&filter_predicates=%3D&filter_values={quote(value, safe='')}")
        return "&".join(parts)

    @property
    def next_column(self) -> str | None:
        """The column to split by if the answer is too long."""
        columns = SPLITS.get(self.kind, ())
        return columns[len(self.filters)] if len(self.filters) < len(columns) else None

    @property
    def has_open_values(self) -> bool:
        """Whether the next column may hold values that a full page does not show."""
        return self.next_column not in ("job_id", "state")

    def parts(self, rows: Iterable[Row], jobs: Iterable[str]) -> list[Page]:
        """Pages that hold the same rows in smaller portions; none if there is no column left."""
        if (column := self.next_column) is None:
            return []
        seen = {str(row[column]) for row in rows if row.get(column)}
        known = {"job_id": jobs, "state": _STATES.get(self.kind, ())}.get(column, ())
        return [Page(self.kind, (*self.filters, (column, value)), self.max_rows) for value in sorted({*seen, *known})]


class _Result(msgspec.Struct):
    result: list[Row]
    partial_failure_warning: str | None = ""


class _Data(msgspec.Struct):
    result: _Result


class _Envelope(msgspec.Struct):
    data: _Data


@dataclass(frozen=True)
class Rows:
    """What one page held."""

    rows: list[Row]
    warning: str
    """Ray's own word about what is missing; empty if nothing is."""


def parse_rows(body: bytes) -> Rows:
    """The rows of an answer. Raises msgspec.DecodeError for anything else."""
    found = msgspec.json.decode(body, type=_Envelope).data.result
    return Rows(found.result, found.partial_failure_warning or "")
