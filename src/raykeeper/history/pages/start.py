"""The start page: all sessions, newest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import HTMLResponse

from raykeeper.history.entries import CatalogEntry, Page
from raykeeper.history.pages.addresses import report_path, session_path
from raykeeper.history.pages.frame import page_response
from raykeeper.history.pages.markup import Html, join, tag
from raykeeper.history.pages.widgets import link, moment, note, nothing, pager, quiet, state_badge, table
from raykeeper.history.state import State

OPEN_NOTE = (
    "Whoever reaches this address can read the history of every namespace. Set --auth=token to ask who they are, "
    "or --auth=none to say that this is meant."
)
_HEADERS = ("Cluster", "Namespace", "State", "Started", "Ended", "Ray")


@dataclass(frozen=True)
class SessionRow:
    entry: CatalogEntry
    state: State


def start_page(rows: Sequence[SessionRow], page: Page, *, is_first: bool, is_undecided: bool) -> HTMLResponse:
    notes = [OPEN_NOTE] if is_undecided else []
    if page.unreadable:
        notes.append(f"{page.unreadable} entries of the catalog could not be read and are missing here.")
    older = f"/?after={quote(str(page.next_place), safe='')}" if page.next_place else None
    shown = table("Sessions", _HEADERS, map(_row, rows), name="sessions", hides_caption=True)
    body = [
        *map(note, notes),
        shown if rows else _nothing(is_first=is_first),
        pager(first=None if is_first else "/", following=older),
    ]
    return page_response("Ray sessions", join(body), section="sessions")


def _nothing(*, is_first: bool) -> Html:
    if not is_first:
        return nothing("There are no older sessions.")
    return nothing(
        "There are no sessions yet. They appear here within seconds of the start of a Ray cluster that has a collector."
    )


def _row(row: SessionRow) -> tuple[str, ...]:
    start, end = row.entry.start, row.entry.end if row.entry.has_ended else None
    owner = f"{start.owner_kind} {start.owner_name}".strip()
    names = join([link(start.cluster, session_path(row.entry.id)), " ", link("what failed", report_path(row.entry.id))])
    below = [join([tag("br"), quiet(words)]) for words in (start.session, owner) if words]
    return (
        join([names, *below]),
        start.namespace,
        state_badge(row.state),
        moment(start.started_at),
        moment(end.ended_at) if end else "",
        start.ray_version,
    )
