"""The page that asks for the token. Pure."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import bare_response
from raykeeper.history.http.pages.markup import EMPTY, join, tag
from raykeeper.history.http.pages.widgets import note


def login_page(next_path: str, *, was_wrong: bool = False) -> HTMLResponse:
    token = tag("input", type="password", name="token", autocomplete="current-password", autofocus=True, required=True)
    form = tag(
        "form",
        tag("input", type="hidden", name="next", value=next_path),
        tag("label", "Token ", token),
        tag("button", "Continue"),
        method="post",
        action="/login",
        class_="filters",
    )
    wrong = note("That was not the token.", "bad") if was_wrong else EMPTY
    return bare_response("Ray sessions", join([wrong, form]), 403 if was_wrong else 401)


def local_path(text: str) -> str:
    """A path of this server to go to after the login; anything that could lead elsewhere becomes the start page."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"
