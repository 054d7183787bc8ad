"""One slim bar in Ray's own dashboard: whose history this is, when and why it ended, and the ways back.

It is put into the start page while that is served; Ray's files stay as they are. What stands between the two comments
is ours.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from raykeeper.errors import RaykeeperError
from raykeeper.history.http.pages.assets import asset_path
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import moment
from raykeeper.history.query.history import History
from raykeeper.history.store.session_state import SessionState, State, listed_state
from raykeeper.history.text import cut_at_word, without_ansi
from raykeeper.history.urls import overview_path, report_path, search_path, session_path
from raykeeper.layout.keys import SessionId
from raykeeper.layout.summaries import SessionSummary

BEGIN, END = "<!--raykeeper-->", "<!--/raykeeper-->"
_HEAD, _BODY = "</head>", "<body>"
_WHY_CHARS = 160
_WAIT_SECONDS = 2.0  # a store that is slow must not keep Ray's own page away


@dataclass(frozen=True)
class Bar:
    """What is put into Ray's start page."""

    shown: Html
    ended_at: datetime | None = None
    """When the session ended: to Ray's page that is now, because it counts durations until now."""


def with_bar(page: str, bar: Bar) -> str:
    """The start page with the bar in it; one of another shape stays as it is."""
    if _HEAD not in page or _BODY not in page:
        return page
    ended_ms = None if bar.ended_at is None else int(bar.ended_at.timestamp() * 1000)
    # The script comes first: it must see the requests of Ray's page from the first one on.
    ours = join(
        [
            tag("script", src=asset_path("dashboard-bar.js"), data_ended_ms=ended_ms),
            tag("link", rel="stylesheet", href=asset_path("dashboard-bar.css")),
        ]
    )
    head, _, rest = page.partition("<head>")
    page = f"{head}<head>{BEGIN}{ours}{END}{rest}"
    return page.replace(_BODY, f"{_BODY}{BEGIN}{bar.shown}{END}", 1)


async def bar_of(history: History, session: SessionId) -> Bar:
    """What is known of the session without opening it: its page must be there at once."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            entry = await history.catalog.find(session)
            summary = await history.catalog.summaries.find(entry) if entry else None
            is_listed = entry is not None and entry.end is not None and entry.has_ended
            listed = listed_state(entry.end) if entry and entry.end and is_listed else None
            life = listed or await history.heartbeats.state(session)
            return Bar(bar(session, life, summary), life.ended_at)
    except (TimeoutError, RaykeeperError):
        return Bar(bar(session, None, None))


def bar(session: SessionId, life: SessionState | None, summary: SessionSummary | None) -> Html:
    """Pure."""
    state = EMPTY
    if life is not None:
        words = "state unknown" if life.state is State.UNKNOWN else life.words
        state = tag("span", words, " " if life.ended_at else "", moment(life.ended_at), class_="rk-state")
    links = [
        tag("a", "Job", href="/jobs", id="rk-job", hidden=True, data_session=session_path(session)),
        tag("a", "Session", href=overview_path(session)),
        tag("a", "Search", href=search_path(session)),
        tag("a", "All jobs", href="/jobs"),
    ]
    return tag(
        "nav",
        tag("a", "Raykeeper", href="/", class_="rk-brand"),
        tag("span", f"History of {session.namespace} / {session.cluster}", class_="rk-name"),
        state,
        _why(session, summary),
        tag("span", *(join([" ", one]) for one in links), class_="rk-ways"),
        id="raykeeper-bar",
        aria_label="Raykeeper",
    )


def _why(session: SessionId, summary: SessionSummary | None) -> Html:
    href, headline = report_path(session), summary.headline if summary else None
    if headline is None:
        words = "Nothing failed" if summary and summary.outcome == "ok" else "Report"
        return tag("a", words, href=href, class_="rk-why")
    where = f"{headline.where}: " if headline.where else ""
    return tag(
        "a", "Why: ", cut_at_word(without_ansi(f"{where}{headline.text}"), _WHY_CHARS), href=href, class_="rk-why"
    )
