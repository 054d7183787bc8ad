"""Authentication by one token: in a header, as Ray's own clients send it, or in the cookie that `/login` sets.

The cookie is the time at which it ends, signed with the token: it is good at every replica, and the token itself is not
in it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from raykeeper.history.http.access.callers import Caller, Verdict
from raykeeper.history.http.access.refusals import MISSING, WRONG, refused_program, sent_to_login, wants_to_sign_in
from raykeeper.history.http.pages.login import LOGIN_PATH, LOGOUT_PATH, local_path, login_page, signed_out_page
from raykeeper.history.http.requests import bearer_of, is_by_tls, is_of_other_site, short_body
from raykeeper.history.http.responses import text_response
from raykeeper.history.visibility import EVERYTHING

COOKIE: Final = "raykeeper_access"
COOKIE_SECONDS: Final = 7 * 24 * 3600
_TIME_DIGITS: Final = 12
TOKEN_HOLDER: Final = Caller("token", EVERYTHING, account="token")


class StaticToken:
    """Lets those in who know the token. They see everything."""

    own_paths = frozenset({LOGIN_PATH, LOGOUT_PATH})

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def caller(self, token: str) -> Caller | None:
        """Whoever shows this token; None for another one."""
        return TOKEN_HOLDER if hmac.compare_digest(token.encode(), self._token) else None

    async def check(self, connection: HTTPConnection) -> Verdict:
        shown = bearer_of(connection)
        if shown is not None:
            caller = self.caller(shown)
            return Verdict(caller) if caller else Verdict(refusal=refused_program(WRONG, 403))
        cookie = connection.cookies.get(COOKIE)
        if cookie is not None and self._is_good(cookie):
            return Verdict(replace(TOKEN_HOLDER, can_sign_out=True))
        if wants_to_sign_in(connection):
            return Verdict(refusal=sent_to_login(connection))
        return Verdict(refusal=refused_program(MISSING, 401))

    async def answer(self, request: Request) -> Response:
        if request.url.path == LOGOUT_PATH:
            return self._sign_out(request)
        if request.method != "POST":
            return login_page(local_path(request.query_params.get("next", "/")))
        if is_of_other_site(request):
            return text_response("this server takes no tokens from other pages", 403)
        form = parse_qs((await short_body(request)).decode(errors="replace"))
        next_path = local_path(form.get("next", ["/"])[0])
        if self.caller(form.get("token", [""])[0].strip()) is None:
            return login_page(next_path, was_wrong=True)
        response = RedirectResponse(next_path, 303)
        cookie = self._cookie(int(time.time()) + COOKIE_SECONDS)
        response.set_cookie(COOKIE, cookie, COOKIE_SECONDS, secure=is_by_tls(request), httponly=True, samesite="lax")
        return response

    def _sign_out(self, request: Request) -> Response:
        if request.method != "POST" or is_of_other_site(request):
            return text_response("signing out is a POST of our own pages", 403)
        response = signed_out_page()
        response.delete_cookie(COOKIE, secure=is_by_tls(request), httponly=True, samesite="lax")
        return response

    def _cookie(self, ends_at: int) -> str:
        signed = hmac.digest(self._token, f"raykeeper history cookie until {ends_at}".encode(), hashlib.sha256)
        return f"{ends_at}-{signed.hex()}"

    def _is_good(self, cookie: str) -> bool:
        ends_at, _, _ = cookie.partition("-")
        if not (ends_at.isascii() and ends_at.isdecimal() and len(ends_at) <= _TIME_DIGITS):
            return False
        is_ours = hmac.compare_digest(cookie.encode(), self._cookie(int(ends_at)).encode())
        return is_ours and time.time() < int(ends_at)
