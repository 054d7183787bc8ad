"""The pages for those who are not in: how to sign in, why somebody may not, and that somebody is out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.responses import HTMLResponse

from raykeeper.history.access_rules import Person
from raykeeper.history.http.pages.frame import bare_response
from raykeeper.history.http.pages.login import LOGIN_PATH, LOGOUT_PATH
from raykeeper.history.http.pages.markup import EMPTY, Html, join, tag
from raykeeper.history.http.pages.widgets import facts, note

START_PATH: Final = "/login/start"
_ABOUT = "This history server shows jobs, logs and failure reports of Ray clusters. You see the namespaces you may see."
_WHERE = "A token of Kubernetes, or the token of this server. With kubectl:"
_COMMAND = "kubectl create token <service account>"


@dataclass(frozen=True)
class SignInPage:
    """How people sign in here."""

    provider: str = ""
    """Name of the identity provider; empty where there is none."""
    takes_tokens: bool = False
    contact: str = ""


def sign_in_page(page: SignInPage, next_path: str, *, problem: str = "", status: int = 401) -> HTMLResponse:
    parts = [tag("p", _ABOUT), note(problem, "bad") if problem else EMPTY]
    if page.provider:
        href = f"{START_PATH}?next={quote(next_path)}"
        parts.append(tag("p", tag("a", f"Sign in with {page.provider}", href=href, class_="button main")))
    if page.takes_tokens:
        parts.append(_token_form(next_path))
    parts.append(_contact(page, "Ask if you have no account, or see too little"))
    return bare_response("Sign in to Raykeeper", join(parts), status)


def _token_form(next_path: str) -> Html:
    token = tag("input", type="password", name="token", autocomplete="off", required=True)
    form = tag(
        "form",
        tag("input", type="hidden", name="next", value=next_path),
        tag("label", "Token", token),
        tag("button", "Sign in", class_="main"),
        method="post",
        action=LOGIN_PATH,
        class_="login",
    )
    where = tag("details", tag("summary", "Where do I get a token?"), tag("p", _WHERE), tag("pre", _COMMAND))
    return join([form, where])


def forbidden_page(page: SignInPage, person: Person, why: str) -> HTMLResponse:
    """Says who somebody is to us, so that whoever they ask knows what to add where."""
    known = facts(
        [
            ("Name", person.name or person.user),
            ("User", person.user),
            ("uid", person.uid),
            ("Verified e-mail", person.email or "none"),
            ("Groups", ", ".join(person.groups[:50]) or "none"),
        ]
    )
    out = tag("form", tag("button", "Sign out", type="submit"), action=LOGOUT_PATH, method="post")
    ask = _contact(page, "Ask, and send what stands above")
    return bare_response("You may not see this server", join([note(why, "bad"), known, ask, out]), 403)


def signed_out_page(page: SignInPage, provider_url: str) -> HTMLResponse:
    """`provider_url` ends the login at the provider, too; the browser goes there by itself."""
    further = EMPTY
    if provider_url:
        further = tag("p", tag("a", f"Sign out of {page.provider}, too", href=provider_url))
    body = [
        tag("p", "You are signed out of this server."),
        further,
        tag("p", tag("a", "Sign in again", href=LOGIN_PATH)),
    ]
    response = bare_response("Signed out", join(body))
    if provider_url:
        response.headers["Refresh"] = f"1; url={provider_url}"
    return response


def _contact(page: SignInPage, words: str) -> Html:
    return tag("p", f"{words}: {page.contact}") if page.contact else EMPTY
