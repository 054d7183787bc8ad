"""The page that asks for the token. Pure."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse

from raykeeper.history.pages.html import page_response


def login_page(next_path: str, *, was_wrong: bool = False) -> HTMLResponse:
    note = '<p class="note">That was not the token.</p>' if was_wrong else ""
    body = (
        f"<h1>Ray sessions</h1>{note}"
        '<form method="post" action="/login"><p><label>Token '
        '<input type="password" name="token" autocomplete="current-password" autofocus required></label> '
        f'<input type="hidden" name="next" value="{escape(next_path)}"><button>Continue</button></p></form>'
    )
    return page_response("Ray sessions", body, 403 if was_wrong else 401)


def local_path(text: str) -> str:
    """A path of this server to go to after the login; anything that could lead elsewhere becomes the start page."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"
