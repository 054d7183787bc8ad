"""The page that asks for the token. Pure."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from raykeeper.history.http.pages.frame import bare_response
from raykeeper.history.http.pages.markup import EMPTY, join, tag
from raykeeper.history.http.pages.widgets import note

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
_ABOUT = "This history server shows jobs, logs and failure reports of Ray clusters to whoever has its token."
_WHERE = (
    "The token is the one that the server was started with: the content of --auth-token-file, or the variable "
    "RAYKEEPER_AUTH_TOKEN. On Kubernetes it is in the Secret of the release; whoever installed Raykeeper can read it."
)


def login_page(next_path: str, *, was_wrong: bool = False) -> HTMLResponse:
    token = tag("input", type="password", name="token", autocomplete="current-password", autofocus=True, required=True)
    form = tag(
        "form",
        tag("input", type="hidden", name="next", value=next_path),
        tag("label", "Token", token),
        tag("button", "Sign in", class_="main"),
        method="post",
        action=LOGIN_PATH,
        class_="login",
    )
    wrong = note("That is not the token of this server.", "bad") if was_wrong else EMPTY
    where = tag("details", tag("summary", "Where do I find the token?"), tag("p", _WHERE))
    body = join([tag("p", _ABOUT), wrong, form, where])
    return bare_response("Sign in to Raykeeper", body, 403 if was_wrong else 401)


def signed_out_page(words: str = "You are signed out of this server.") -> HTMLResponse:
    return bare_response("Signed out", join([tag("p", words), tag("p", tag("a", "Sign in again", href=LOGIN_PATH))]))


def local_path(text: str) -> str:
    """A path of this server to go to after the login; anything that could lead elsewhere becomes the start page."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"
