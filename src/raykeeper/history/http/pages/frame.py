"""The frame of our own pages: head, navigation, the way back, and what a page may load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.assets import asset_path
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.layout.keys import SessionId

# Whatever a name in a bucket might smuggle in is not run, loaded or sent anywhere.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Section = Literal["sessions", "jobs", "search"]
_SECTIONS: tuple[tuple[Section, str, str], ...] = (
    ("sessions", "Sessions", "/"),
    ("jobs", "Jobs", "/jobs"),
    ("search", "Search", "/search"),
)


@dataclass(frozen=True)
class Crumb:
    """One step on the way from the start page to this one."""

    text: str
    href: str


def page_response(
    title: str, body: Html, status: int = 200, *, section: Section | None = None, crumbs: Sequence[Crumb] = ()
) -> HTMLResponse:
    """A whole page under a heading of its title.

    `section` is marked in the navigation. `crumbs` are the pages above this one, outermost first.
    """
    within = tag("main", _trail(crumbs, title), tag("h1", title), body, id="main")
    return HTMLResponse(_document(title, join([_skip_link(), _header(section), within])), status, _HEADERS)


def bare_response(title: str, body: Html, status: int = 200) -> HTMLResponse:
    """A page for somebody who may not go anywhere else yet."""
    return HTMLResponse(_document(title, tag("main", tag("h1", title), body, id="main")), status, _HEADERS)


def message_response(title: str, text: str, status: int) -> HTMLResponse:
    """A page that says one thing, with the way back to the list."""
    back = tag("p", tag("a", "All sessions", href="/"))
    return page_response(title, join([tag("p", text), back]), status)


def _document(title: str, body: Html) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Raykeeper"),
        tag("link", rel="icon", href=asset_path("keeper.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=asset_path("keeper.css")),
        tag("script", type="module", src=asset_path("keeper.js")),
    )
    return f"<!doctype html>{tag('html', head, tag('body', body), lang='en')}"


def _skip_link() -> Html:
    return tag("a", "Skip to content", href="#main", class_="skip")


def _header(current: Section | None) -> Html:
    links = (
        tag("a", words, href=path, aria_current="true" if section == current else None)
        for section, words, path in _SECTIONS
    )
    items = tag("ul", *(tag("li", link) for link in links))
    return tag("header", tag("nav", items, aria_label="Raykeeper"), class_="site")


def _trail(crumbs: Sequence[Crumb], title: str) -> Html:
    if not crumbs:
        return EMPTY
    above = [tag("li", tag("a", crumb.text, href=crumb.href)) for crumb in crumbs]
    here = tag("li", tag("span", title, aria_current="page"))
    return tag("nav", tag("ol", *above, here), aria_label="Breadcrumb", class_="crumbs")


def session_crumbs(session: SessionId) -> tuple[Crumb, ...]:
    """The way from the start page to whatever is about a session."""
    cluster = f"{session.namespace} / {session.cluster}"
    only_these = f"/?namespace={quote(session.namespace, safe='')}&cluster={quote(session.cluster, safe='')}"
    return Crumb("Sessions", "/"), Crumb(cluster, only_these)
