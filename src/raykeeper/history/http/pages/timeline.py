"""The timeline of a session or job: a canvas for those with a script, and its lanes as a table for all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from raykeeper.history.errors import InvalidQuery
from raykeeper.history.http.keeper_api.operation import PREFIX
from raykeeper.history.http.keeper_api.timeline import ViewQuery, view_of
from raykeeper.history.http.pages.forms import page_query
from raykeeper.history.http.pages.frame import Crumb, page_response, session_crumbs
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import duration, link, moment, table
from raykeeper.history.overview.timeline import TimelineLane, TimelineView
from raykeeper.history.overview.timeline_index import Grouping
from raykeeper.history.overview.timeline_marks import LineMark
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.history import History
from raykeeper.history.urls import overview_path, session_path
from raykeeper.layout.keys import SessionId

STYLES, SCRIPTS = ("timeline.css",), ("timeline.js",)
"""What a page loads that has a timeline in it."""
_PATIENCE_SECONDS = 0.4
"""A page is not kept waiting while a large session's index is made: its script asks for the rest."""
_GROUPINGS: dict[Grouping, str] = {"actor": "Actor", "worker": "Worker", "node": "Node", "function": "Function"}
_KEY = (
    ("finished", "ran"),
    ("running", "did not end"),
    ("failed", "failed"),
    ("warning", "Kubernetes warning"),
    ("normal", "Kubernetes event"),
)
_HIDDEN_INKS = ("line", "label", "focus")
_BUTTONS = (
    ("in", "Zoom in"),
    ("out", "Zoom out"),
    ("earlier", "Earlier"),
    ("later", "Later"),
    ("reset", "Show all"),
    ("before", "Previous lanes"),
    ("behind", "Next lanes"),
)
_HELP = (
    "Wheel, + and - zoom. Drag or ← → pan. Shift-drag selects tasks and shows their log lines. ↑ ↓ choose a lane, "
    "n and p a task, Enter opens it. 0 shows all."
)


@dataclass(frozen=True)
class TimelineTab:
    """What a timeline is about, and how somebody wants to see it."""

    session: SessionId
    job: str | None
    query: ViewQuery
    view: TimelineView | None
    """None while its index is being made."""

    @property
    def scope(self) -> str:
        """The operation behind it, below the session's own prefix of the API."""
        return f"jobs/{quote(self.job, safe='')}/timeline" if self.job is not None else "timeline"


async def timeline_tab(request: Request, context: SessionContext, job: str | None) -> TimelineTab:
    """What `timeline_section` shows, by the parameters `group`, `internals`, `start` and `end` of a page's address.

    Parameters of others are left alone, and so is what cannot be read in those. Raises NotFound.
    """
    given = {name: value for name, value in request.query_params.items() if name in _PARAMETERS}
    try:
        query = page_query(given, ViewQuery)
    except InvalidQuery:
        query = ViewQuery()
    making = asyncio.create_task(view_of(context, query, job))
    done, _ = await asyncio.wait([making], timeout=_PATIENCE_SECONDS)
    if done:
        return TimelineTab(context.session.id, job, query, making.result())
    making.add_done_callback(_forget)
    return TimelineTab(context.session.id, job, query, None)


_PARAMETERS = ("group", "internals", "start", "end")


def _forget(making: asyncio.Task[TimelineView]) -> None:
    """Nobody waits for it any more: the next one who asks hears of what went wrong."""
    if not making.cancelled():
        making.exception()


def timeline_section(tab: TimelineTab, without_script: Html = EMPTY) -> Html:
    """The whole timeline; `without_script` is a picture for those who have none. Pure."""
    stage = tag(
        "div",
        tag(
            "canvas",
            tabindex="0",
            role="application",
            aria_label="Timeline of tasks",
            aria_describedby="timeline-help",
        ),
        tag("div", class_="tip", hidden=True),
        class_="stage",
        hidden=True,
        data_scripted=True,
    )
    return tag(
        "section",
        tag("h2", "Lanes", class_="unseen"),
        _tools(tab.query),
        stage,
        _key(),
        tag("p", _HELP, id="timeline-help", class_="quiet", hidden=True, data_scripted=True),
        tag("p", _summary(tab.view), role="status"),
        tag("div", class_="opened", hidden=True),
        tag("noscript", without_script) if without_script else EMPTY,
        _marks(tab.view.marks if tab.view else ()),
        _table(tab.view.lanes if tab.view else ()),
        class_="timeline",
        data_timeline=True,
        data_api=f"{session_path(tab.session).rstrip('/')}{PREFIX}/",
        data_scope=tab.scope,
        aria_label="Timeline",
    )


def _tools(query: ViewQuery) -> Html:
    options = [tag("option", words, value=value, selected=value == query.group) for value, words in _GROUPINGS.items()]
    box = tag("input", type="checkbox", name="internals", value="true", checked=query.internals)
    buttons = [tag("button", words, type="button", data_does=does) for does, words in _BUTTONS]
    return tag(
        "form",
        tag("label", "Group by ", tag("select", *options, name="group")),
        tag("label", box, " Ray internals"),
        tag("noscript", tag("button", "Apply")),
        tag("span", *buttons, class_="buttons", hidden=True, data_scripted=True),
        method="get",
        class_="tools",
        aria_label="Timeline",
    )


def _key() -> Html:
    """Its swatches are also where the script reads colours from."""
    items = [tag("li", tag("span", class_=f"swatch {kind}"), words) for kind, words in _KEY]
    hidden = [tag("span", class_=f"swatch {kind}") for kind in _HIDDEN_INKS]
    return tag(
        "div",
        tag("ul", *items, class_="key"),
        tag("span", *hidden, class_="unseen", aria_hidden="true"),
        hidden=True,
        data_scripted=True,
    )


def _summary(view: TimelineView | None) -> str:
    if view is None:
        return (
            "The timeline of this session is being prepared. It appears here within seconds; reload without a script."
        )
    more = f" {view.lanes_left_out:,} more lanes are not shown." if view.lanes_left_out else ""
    return f"{view.attempts:,} task attempts; {view.waiting:,} never started.{more}"


def _marks(marks: Iterable[LineMark]) -> Html:
    items = [tag("li", moment(mark.at), f" {mark.about}: {mark.title}") for mark in marks]
    return tag("details", tag("summary", "Events on the timeline"), tag("ul", *items), class_="marks", hidden=not items)


def _table(lanes: Iterable[TimelineLane]) -> Html:
    headers = ("Lane", "Attempts", "Failed", "Busy", "Tasks")
    rows = [_row(lane) for lane in lanes]
    shown = table("Lanes", headers, rows, hides_caption=True, numbers=headers[1:4])
    return tag("details", tag("summary", "Lanes as a table"), shown, class_="told")


def _row(lane: TimelineLane) -> tuple[str, ...]:
    name = join([lane.label, " ", tag("span", lane.note, class_="quiet")])
    busy = duration(timedelta(seconds=lane.busy_seconds))
    return name, f"{lane.attempts:,}", f"{lane.failed:,}", busy, ""


async def get_timeline_page(request: Request, context: SessionContext, _: History) -> Response:
    """The timeline of a whole session; that of a job is a tab of its page."""
    session = context.session.id
    tab = await timeline_tab(request, context, None)
    overview = Crumb(session.session, overview_path(session))
    picture = tag("p", "Without a script, ", link("a picture of it", overview.href), " is on the page above.")
    return page_response(
        "Timeline",
        timeline_section(tab, picture),
        section="sessions",
        crumbs=[*session_crumbs(session), overview],
        styles=STYLES,
        scripts=SCRIPTS,
    )
