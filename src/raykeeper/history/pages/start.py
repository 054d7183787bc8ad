"""The start page: all sessions, or those that are asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import HTMLResponse

from raykeeper.history.pages.addresses import overview_path, report_path, session_path
from raykeeper.history.pages.forms import Given, choice, filter_form, link_with, text_field
from raykeeper.history.pages.frame import page_response
from raykeeper.history.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.pages.widgets import duration, link, moment, note, nothing, pager, quiet, state_badge, table
from raykeeper.history.sessionlist import SessionRow, SessionRows
from raykeeper.layout.keys import SessionId

PATH = "/"
OPEN_NOTE = (
    "Whoever reaches this address can read the history of every namespace. Set --auth=token to ask who they are, "
    "or --auth=none to say that this is meant."
)
_HEADERS = ("Cluster", "Namespace", "State", "Started", "Ended", "Lasted", "Ray")
_STATES = {"": "any", "running": "running", "ended": "ended", "crashed": "crashed"}
_ORDERS = {"newest": "newest", "oldest": "oldest"}


def start_page(found: SessionRows, given: Given, unstarted: Html = EMPTY, *, is_undecided: bool) -> HTMLResponse:
    """`unstarted` tells of clusters that have no session."""
    notes = [OPEN_NOTE] if is_undecided else []
    if found.unreadable:
        notes.append(f"{found.unreadable} of the catalog's entries could not be read and are missing here.")
    shown = table("Sessions", _HEADERS, map(_row, found.rows), name="sessions", hides_caption=True, numbers=("Lasted",))
    body = [
        *map(note, notes),
        filter_form(PATH, "Which sessions", _fields(given), given),
        shown if found.rows else _nothing(given, is_cut=found.is_cut),
        _cut(found),
        _pager(found, given),
        unstarted,
    ]
    return page_response("Ray sessions", join(body), section="sessions")


def _fields(given: Given) -> tuple[Html, ...]:
    return (
        text_field("Words in names", "text", given, "search"),
        text_field("Namespace", "namespace", given),
        text_field("Cluster", "cluster", given),
        text_field("Owner", "owner", given),
        choice("State", "state", given, _STATES),
        text_field("Started from", "since", given, "date"),
        text_field("Started until", "until", given, "date"),
        choice("First", "order", given, _ORDERS),
    )


def _nothing(given: Given, *, is_cut: bool) -> Html:
    if is_cut:
        return nothing("None so far.")
    if "after" in given:
        return nothing("There are no more sessions.")
    if given:
        return nothing("There is no such session.")
    return nothing(
        "There are no sessions yet. They appear here within seconds of the start of a Ray cluster that has a collector."
    )


def _cut(found: SessionRows) -> Html:
    """That the list goes on, although it seems to end."""
    if not found.is_cut or found.next_place is None:
        return EMPTY
    return tag(
        "p", "Few sessions are like that. Looked through those back to ", moment(found.next_place.started_at), "."
    )


def _pager(found: SessionRows, given: Given) -> Html:
    following = link_with(PATH, given, after=str(found.next_place)) if found.next_place else None
    first = link_with(PATH, given, after="") if "after" in given else None
    words = ("Oldest", "Newer") if given.get("order") == "oldest" else ("Newest", "Older")
    return pager(first=first, following=following, words=words)


def _aside(row: SessionRow, words: str, path_of: Callable[[SessionId], str]) -> Html:
    return join([" · ", link(words, path_of(row.entry.id))])


def _row(row: SessionRow) -> tuple[str, ...]:
    start, end = row.entry.start, row.entry.end if row.entry.has_ended else None
    places = (("what failed", report_path), ("dashboard", session_path))
    names = join([link(start.cluster, overview_path(row.entry.id)), *(_aside(row, *place) for place in places)])
    below = [join([tag("br"), quiet(words)]) for words in (start.session, row.entry.owner) if words]
    return (
        join([names, *below]),
        start.namespace,
        state_badge(row.state),
        moment(start.started_at),
        moment(end.ended_at) if end else "",
        duration(end.ended_at - start.started_at) if end else "",
        start.ray_version,
    )
