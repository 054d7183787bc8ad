"""The start page: all sessions, newest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from starlette.responses import HTMLResponse

from raykeeper.history.entries import CatalogEntry, Page
from raykeeper.history.pages.html import page_response
from raykeeper.history.state import State
from raykeeper.layout.keys import SessionId

OPEN_NOTE = (
    "Whoever reaches this address can read the history of every namespace. Set --auth=token to ask who they are, "
    "or --auth=none to say that this is meant."
)


@dataclass(frozen=True)
class SessionRow:
    entry: CatalogEntry
    state: State


def session_path(session: SessionId) -> str:
    """Where a session's dashboard is."""
    names = (session.namespace, session.cluster, session.session)
    return f"/s/{'/'.join(quote(name, safe='') for name in names)}/"


def start_page(rows: Sequence[SessionRow], page: Page, *, is_first: bool, is_undecided: bool) -> HTMLResponse:
    notes = [OPEN_NOTE] if is_undecided else []
    if page.unreadable:
        notes.append(f"{page.unreadable} entries of the catalog could not be read and are missing here.")
    body = "".join(
        [
            "<h1>Ray sessions</h1>",
            *(f'<p class="note">{escape(note)}</p>' for note in notes),
            _table(rows) if rows else _nothing(is_first=is_first),
            _links(page, is_first=is_first),
        ]
    )
    return page_response("Ray sessions", body)


def _nothing(*, is_first: bool) -> str:
    if not is_first:
        return '<p class="quiet">There are no older sessions.</p>'
    return (
        '<p class="quiet">There are no sessions yet. They appear here within seconds of the start of a Ray cluster '
        "that has a collector.</p>"
    )


def _table(rows: Sequence[SessionRow]) -> str:
    head = "<tr><th>Cluster</th><th>Namespace</th><th>State</th><th>Started</th><th>Ended</th><th>Ray</th></tr>"
    return f"<table>{head}{''.join(map(_row, rows))}</table>"


def _row(row: SessionRow) -> str:
    start, end = row.entry.start, row.entry.end if row.entry.has_ended else None
    owner = f"{start.owner_kind} {start.owner_name}".strip()
    name = f'<a href="{escape(session_path(row.entry.id))}">{escape(start.cluster)}</a>'
    name += f' <a class="quiet" href="{escape(session_path(row.entry.id))}report">what failed</a>'
    below = "".join(f'<br><span class="quiet">{escape(text)}</span>' for text in (start.session, owner) if text)
    state = f'<span class="state {row.state.value}">{row.state.value}</span>'
    ended = _time(end.ended_at) if end else ""
    cells = (name + below, escape(start.namespace), state, _time(start.started_at), ended, escape(start.ray_version))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _time(time: datetime) -> str:
    utc = time.astimezone(UTC)
    return f'<time datetime="{utc.isoformat()}">{utc:%Y-%m-%d %H:%M:%S} UTC</time>'


def _links(page: Page, *, is_first: bool) -> str:
    links = [] if is_first else ['<a href="/">Newest</a>']
    if page.next_place:
        links.append(f'<a rel="next" href="/?after={quote(str(page.next_place), safe="")}">Older</a>')
    return f"<p>{' · '.join(links)}</p>" if links else ""
