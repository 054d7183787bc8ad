"""The frame of our own pages: head, header, the way back, and what a page may load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from raykeeper.history.http.pages.assets import asset_path
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.search.model import WORDS_CHARS
from raykeeper.history.urls import LIVE_PATH
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

Section = Literal["jobs", "failures", "sessions", "live", "compare", "storage", "search"]
_SECTIONS: tuple[tuple[Section, str, str], ...] = (
    ("jobs", "Jobs", "/"),
    ("failures", "Failures", "/failures"),
    ("sessions", "Sessions", "/sessions"),
    ("live", "Live", LIVE_PATH),
    ("compare", "Compare", "/compare"),
    ("storage", "Storage", "/storage"),
)
"""The navigation. Searching has a box of its own beside it."""


@dataclass(frozen=True)
class Crumb:
    """One step on the way from the start page to this one."""

    text: str
    href: str


def page_response(
    title: str,
    body: Html,
    status: int = 200,
    *,
    section: Section | None = None,
    crumbs: Sequence[Crumb] = (),
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> HTMLResponse:
    """A whole page under a heading of its title.

    `section` is marked in the navigation. `crumbs` are the pages above this one, outermost first. `styles` and
    `scripts` are files of the folder `static/` that this page needs beside those of all pages; scripts are modules.
    """
    within = tag("main", _trail(crumbs, title), tag("h1", title), body, id="main")
    whole = join([_skip_link(), _header(section), within])
    return HTMLResponse(_document(title, whole, styles, scripts), status, _HEADERS)


def bare_response(title: str, body: Html, status: int = 200) -> HTMLResponse:
    """A page for somebody who may not go anywhere else yet."""
    bar = tag("header", tag("span", "Raykeeper", class_="brand"), _theme_switch(), class_="site bare")
    within = tag("main", tag("h1", title), body, id="main", class_="alone")
    return HTMLResponse(_document(title, join([bar, within])), status, _HEADERS)


def message_response(title: str, text: str, status: int) -> HTMLResponse:
    """A page that says one thing, with the ways back to the lists."""
    ways = (tag("a", words, href=path) for _, words, path in _SECTIONS)
    said = tag("section", tag("p", text), tag("p", join(ways, " · "), class_="ways"), class_="message")
    return page_response(title, said, status)


def _document(title: str, body: Html, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Raykeeper"),
        tag("link", rel="icon", href=asset_path("keeper.svg"), type="image/svg+xml"),
        tag("script", src=asset_path("theme.js")),  # no module: it must run before the first paint
        *(tag("link", rel="stylesheet", href=asset_path(name)) for name in ("keeper.css", *styles)),
        *(tag("script", type="module", src=asset_path(name)) for name in ("keeper.js", *scripts)),
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
    brand = tag("a", "Raykeeper", href="/", class_="brand")
    nav = tag("nav", items, aria_label="Raykeeper")
    return tag("header", brand, nav, _search_box(), _ACCOUNT_PLACE, _theme_switch(), class_="site")


_ACCOUNT_PLACE = Html('<span id="account-place"></span>')
"""Stands in every page where the name of who is signed in belongs. Names are escaped, so none looks like it."""
_NAME_CHARS = 60


def with_account(response: Response, name: str, *, can_sign_out: bool) -> Response:
    """A page with the name of who is signed in, and a button to sign out; any other answer as it is."""
    if not isinstance(response, HTMLResponse):
        return response
    account = _account(name, can_sign_out=can_sign_out) if name else EMPTY
    response.body = bytes(response.body).replace(_ACCOUNT_PLACE.encode(), account.encode(), 1)
    response.headers["Content-Length"] = str(len(response.body))
    return response


def _account(name: str, *, can_sign_out: bool) -> Html:
    shown = name if len(name) <= _NAME_CHARS else f"{name[:_NAME_CHARS]}…"
    who = tag("span", shown, title=f"Signed in as {name}", class_="who")
    if not can_sign_out:
        return tag("span", who, class_="account")
    out = tag("form", tag("button", "Sign out", type="submit"), action="/logout", method="post")
    return tag("span", who, out, class_="account")


def _search_box() -> Html:
    """Finds what was logged or raised anywhere, whatever its case."""
    box = tag(
        "input",
        type="search",
        name="text",
        required=True,
        maxlength=WORDS_CHARS,
        placeholder="Search errors and logs",
        aria_label="Search errors and logs of all sessions",
        aria_keyshortcuts="/",
    )
    return tag("form", box, action="/search", method="get", role="search", aria_label="All sessions", class_="find")


def _theme_switch() -> Html:
    """Hidden until the script shows it: without one the system's theme counts."""
    return tag("button", "", type="button", class_="theme", data_switches="theme", hidden=True)


def _trail(crumbs: Sequence[Crumb], title: str) -> Html:
    if not crumbs:
        return EMPTY
    above = [tag("li", tag("a", crumb.text, href=crumb.href)) for crumb in crumbs]
    here = tag("li", tag("span", title, aria_current="page"))
    return tag("nav", tag("ol", *above, here), aria_label="Breadcrumb", class_="crumbs")


def session_crumbs(session: SessionId) -> tuple[Crumb, ...]:
    """The way from the start page to whatever is about a session."""
    cluster = f"{session.namespace} / {session.cluster}"
    only_these = f"/sessions?namespace={quote(session.namespace, safe='')}&cluster={quote(session.cluster, safe='')}"
    return Crumb("Sessions", "/sessions"), Crumb(cluster, only_these)
