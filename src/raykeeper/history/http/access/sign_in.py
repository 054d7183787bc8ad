"""Browser sessions, and tokens in headers, for all modes in which callers differ.

A session is one sealed cookie: any replica opens it, and none remembers it. It lasts minutes; then the provider is
asked again, without a word to the person where it still knows them.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.history.access_rules import Person
from raykeeper.history.bounded import Bounded
from raykeeper.history.http.access.callers import Caller, Verdict
from raykeeper.history.http.access.people import People, PersonRefused
from raykeeper.history.http.access.refusals import MISSING, WRONG, refused_program, sent_to_login, wants_to_sign_in
from raykeeper.history.http.access.sealing import LONGEST_COOKIE, Sealer
from raykeeper.history.http.pages.login import LOGIN_PATH, LOGOUT_PATH, local_path
from raykeeper.history.http.pages.sign_in import (
    START_PATH,
    SignInPage,
    forbidden_page,
    sign_in_page,
    signed_out_page,
)
from raykeeper.history.http.requests import bearer_of, is_by_tls, is_of_other_site, short_body
from raykeeper.history.http.responses import json_response, text_response
from raykeeper.history.settings import LoginSettings
from raykeeper.logs import Log
from raykeeper.masking import masked
from raykeeper.oidc.code_flow import new_attempt
from raykeeper.oidc.errors import TokenRefused

CALLBACK_PATH: Final = "/auth/callback"
CLI_PATH: Final = "/auth/cli"
SESSION_COOKIE: Final = "raykeeper_session"
ATTEMPT_COOKIE: Final = "raykeeper_login"
ATTEMPT_SECONDS: Final = 600.0
MOST_ATTEMPTS: Final = 5
"""Logins that one browser has under way; of more, the oldest are forgotten. Proxies refuse requests with long heads."""
LONGEST_VALUE: Final = 4096
"""Of a parameter that a provider sends back with the browser."""
_REMEMBERED: Final = 10_000
_SKEW_SECONDS: Final = 60.0
"""That clocks of replicas may differ by."""
_REFRESH_KEPT: Final = 1_000
_SESSION, _ATTEMPT = "session", "login"
_MONITORING: Final = "monitoring"
"""The login began at the second address, and leads back there."""

log = Log("raykeeper.history.login")


class Bearer(Protocol):
    """Knows one kind of token."""

    async def caller(self, token: str) -> Caller | None:
        """Whose token it is; None for one that proves nothing here. Raises `PersonRefused` and `Unavailable`."""
        ...


class BrowserSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the cookie of a session holds."""

    id: str
    started_at: float
    expires_at: float
    person: Person | None = None
    refresh_token: str = ""
    token: str = ""
    """A token that was typed in instead; it is checked with each request."""


class LoginAttempt(msgspec.Struct, frozen=True):
    """What the cookie of a login under way holds."""

    state: str
    nonce: str
    verifier: str
    next_url: str
    """A path of this server, or of its second address."""
    ends_at: float


class _LoginRefused(Exception):
    """Why a login cannot go on, in words for the person."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.words = words
        self.status = status


class SignIn:
    """Lets people and programs in."""

    def __init__(
        self,
        settings: LoginSettings,
        sealer: Sealer,
        clock: Clock,
        *,
        people: People | None = None,
        bearers: Sequence[Bearer] = (),
        takes_typed_tokens: bool = False,
    ) -> None:
        """`people` sign in at their provider; `bearers` know tokens in headers, and those that somebody types in."""
        self._settings = settings
        self._sealer = sealer
        self._clock = clock
        self._people = people
        self._bearers = tuple(bearers)
        self._page = SignInPage(
            provider=urlsplit(settings.oidc.issuer_url).hostname or "" if people else "",
            takes_tokens=takes_typed_tokens,
            contact=settings.contact,
        )
        self._is_secure = settings.public_url.startswith("https://")
        self._used_states: Bounded[str, bool] = Bounded(_REMEMBERED)
        self._ended: Bounded[str, bool] = Bounded(_REMEMBERED)
        self._refreshes: Bounded[str, asyncio.Task[BrowserSession]] = Bounded(_REFRESH_KEPT)
        self.own_paths = frozenset({LOGIN_PATH, LOGOUT_PATH, START_PATH, CALLBACK_PATH, CLI_PATH})

    async def check(self, connection: HTTPConnection) -> Verdict:
        shown = bearer_of(connection)
        if shown is not None:
            return await self._by_bearer(shown)
        session = self._session_of(connection)
        if session is None:
            return self._unknown(connection)
        try:
            return await self._by_session(connection, session)
        except PersonRefused as exc:
            return Verdict(refusal=self._forbidden(connection, exc))

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        try:
            if path == CLI_PATH:
                return self._tell_programs()
            if path == LOGOUT_PATH:
                return await self._sign_out(request)
            if path == START_PATH:
                return await self._start(request)
            if path == CALLBACK_PATH:
                return await self._finish(request)
            if request.method == "POST":
                return await self._take_typed_token(request)
            return sign_in_page(self._page, local_path(request.query_params.get("next", "/")))
        except _LoginRefused as exc:
            return sign_in_page(self._page, "/", problem=exc.words, status=exc.status)
        except PersonRefused as exc:
            return forbidden_page(self._page, exc.person, exc.why)

    def _tell_programs(self) -> Response:
        """How `raykeeper login` signs in; nothing in it is secret."""
        how = self._people.cli_login if self._people else None
        return json_response(masked(how)) if how else text_response("no login for the command line is set up", 404)

    async def _by_bearer(self, token: str) -> Verdict:
        try:
            caller = await self._caller(token)
        except PersonRefused as exc:
            return Verdict(refusal=refused_program(f"Forbidden: {exc.why}", 403))
        return Verdict(caller) if caller else Verdict(refusal=refused_program(WRONG, 403))

    async def _caller(self, token: str) -> Caller | None:
        if not token or len(token) > LONGEST_VALUE * 4 or not token.isascii() or not token.isprintable():
            return None
        for bearer in self._bearers:
            if (caller := await bearer.caller(token)) is not None:
                return caller
        return None

    async def _by_session(self, connection: HTTPConnection, session: BrowserSession) -> Verdict:
        now = self._now()
        if session.token:
            caller = await self._caller(session.token)
            if caller is None or now >= session.expires_at:
                return self._unknown(connection)
            renewed = self._prolonged(session) if self._is_due(session) else session
            signed_in = replace(caller, can_sign_out=True)
        else:
            renewed = await self._refreshed(session) if self._is_due(session) and session.refresh_token else session
            if now >= renewed.expires_at or renewed.person is None or self._people is None:
                return self._unknown(connection, knows_provider=True)
            signed_in = await self._people.caller_of(renewed.person, can_sign_out=True)
        cookies = () if renewed is session else (self._session_cookie(connection, renewed),)
        return Verdict(signed_in, cookies=cookies)

    def _unknown(self, connection: HTTPConnection, *, knows_provider: bool = False) -> Verdict:
        """A person is sent to sign in; one who was here a moment ago, straight to the provider, which may not ask."""
        if not wants_to_sign_in(connection):
            return Verdict(refusal=refused_program(MISSING, 401))
        if not knows_provider:
            return Verdict(refusal=sent_to_login(connection))
        return Verdict(refusal=RedirectResponse(f"{START_PATH}?next={quote(_path_of(connection))}", 303))

    def _forbidden(self, connection: HTTPConnection, exc: PersonRefused) -> Response:
        if wants_to_sign_in(connection):
            return forbidden_page(self._page, exc.person, exc.why)
        return refused_program(f"Forbidden: {exc.why}", 403)

    def _session_of(self, connection: HTTPConnection) -> BrowserSession | None:
        """The session that the cookie holds, as long as it may last."""
        cookie = connection.cookies.get(self._cookie_name(SESSION_COOKIE))
        session = self._sealer.open(_SESSION, cookie, BrowserSession) if cookie else None
        if session is None or session.id in self._ended:
            return None
        is_of_now = session.started_at <= self._now() + _SKEW_SECONDS and self._now() < self._end_of(session)
        return session if is_of_now else None

    def _is_due(self, session: BrowserSession) -> bool:
        """Half of its life is over."""
        return self._now() >= session.expires_at - self._settings.session_seconds / 2

    def _end_of(self, session: BrowserSession) -> float:
        return session.started_at + self._settings.max_seconds

    def _prolonged(self, session: BrowserSession) -> BrowserSession:
        ends_at = min(self._now() + self._settings.session_seconds, self._end_of(session))
        return msgspec.structs.replace(session, expires_at=ends_at)

    async def _refreshed(self, session: BrowserSession) -> BrowserSession:
        """The session after the provider was asked again, once for all requests that bring it.

        Where the provider is away or says no, it stays as it was, and ends with its own life: another replica may have
        refreshed it with the same token. Raises `Unavailable` if it has ended and nobody could be asked.
        """
        task = self._refreshes.get(session.refresh_token)
        if task is None or (task.done() and task.exception() is not None):
            task = asyncio.create_task(self._refresh(session))
            self._refreshes.put(session.refresh_token, task)
        try:
            return await asyncio.shield(task)
        except TokenRefused as exc:
            log.info("session is not refreshed: the provider refuses", reason=str(exc))
            return session
        except Unavailable:
            if self._now() >= session.expires_at:
                raise
            return session

    async def _refresh(self, session: BrowserSession) -> BrowserSession:
        if self._people is None or session.person is None:
            return session
        tokens = await (await self._people.flow()).refresh(session.refresh_token)
        person = await self._people.identify_again(tokens, session.person)
        newer = msgspec.structs.replace(
            session, person=person, refresh_token=tokens.refresh_token or session.refresh_token
        )
        return self._fitted(self._prolonged(newer))

    async def _start(self, request: Request) -> Response:
        """Send the browser to the provider, with a cookie that ties what comes back to it."""
        people, next_path = self._people, local_path(request.query_params.get("next", "/"))
        if people is None:
            return RedirectResponse(LOGIN_PATH, 303)
        if "moved" not in request.query_params and not self._is_asked_at(self._settings.public_url, request):
            # The provider sends browsers to the configured name alone, and the cookie must be of the same name.
            moved = f"moved={_MONITORING if self._is_asked_at(self._settings.monitoring_url, request) else 1}"
            return RedirectResponse(f"{self._settings.public_url}{START_PATH}?next={quote(next_path)}&{moved}", 303)
        attempt = new_attempt()
        flow = await people.flow()
        response = RedirectResponse(await flow.authorization_url(attempt, self._redirect_uri), 303)
        ends_at = self._now() + ATTEMPT_SECONDS
        is_back = request.query_params.get("moved") == _MONITORING
        next_url = (self._settings.monitoring_url if is_back else "") + next_path[:1000]
        kept = LoginAttempt(attempt.state, attempt.nonce, attempt.verifier, next_url, ends_at)
        cookie = self._sealer.seal(_ATTEMPT, kept)
        self._set_cookie(response, self._attempt_name(attempt.state), cookie, ATTEMPT_SECONDS)
        for name in self._forgotten_attempts(request):
            self._set_cookie(response, name, "", 0)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _is_asked_at(self, address: str, request: Request) -> bool:
        return bool(address) and request.headers.get("host", "").lower() == urlsplit(address).netloc

    def _forgotten_attempts(self, request: Request) -> list[str]:
        """Cookies of logins that give way to a new one. Browsers send the oldest first."""
        beginning = f"{self._cookie_name(ATTEMPT_COOKIE)}_"
        names = [name for name in request.cookies if name.startswith(beginning)]
        return names[: max(0, len(names) - MOST_ATTEMPTS + 1)]

    async def _finish(self, request: Request) -> Response:
        """What the provider sent the browser back with becomes a session. Each attempt is good once."""
        if self._people is None or request.method != "GET":
            return RedirectResponse(LOGIN_PATH, 303)
        state = request.query_params.get("state", "")
        attempt = self._attempt_of(request, state)
        try:
            flow = await self._people.flow()
            await flow.check_issuer(request.query_params.get("iss"))
            if error := request.query_params.get("error"):
                raise _LoginRefused(_in_words(error), 403)
            code = request.query_params.get("code", "")
            if not code or len(code) > LONGEST_VALUE:
                raise _LoginRefused("The identity provider sent no code. Please sign in again.")
            tokens = await flow.exchange(code, attempt.verifier, self._redirect_uri)
            person = await self._people.identify(tokens, attempt.nonce)
        except TokenRefused as exc:
            log.warning("login refused", reason=str(exc))
            raise _LoginRefused(f"The login could not be checked: {exc}. Please sign in again.", 403) from exc
        caller = await self._people.caller_of(person, can_sign_out=True)
        log.info("signed in", user=caller.account)
        response = RedirectResponse(attempt.next_url, 303)
        self._begin(request, response, person=person, refresh_token=tokens.refresh_token)
        self._set_cookie(response, self._attempt_name(state), "", 0)
        return response

    def _attempt_of(self, request: Request, state: str) -> LoginAttempt:
        """The login that this browser began. Raises _LoginRefused where it began none, or used it already."""
        again = "This login was not begun here, or it took too long. Please sign in again."
        cookie = request.cookies.get(self._attempt_name(state)) if state else None
        attempt = self._sealer.open(_ATTEMPT, cookie, LoginAttempt) if cookie else None
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), state.encode()):
            raise _LoginRefused(again, 403)
        if self._now() >= attempt.ends_at or state in self._used_states:
            raise _LoginRefused(again, 403)
        self._used_states.put(state, True)
        return attempt

    def _begin(
        self,
        request: Request,
        response: Response,
        *,
        person: Person | None = None,
        refresh_token: str = "",
        token: str = "",
    ) -> None:
        """Set the cookie of a new session, whatever the browser had before."""
        now = self._now()
        ends_at = now + min(self._settings.session_seconds, self._settings.max_seconds)
        session = BrowserSession(secrets.token_urlsafe(12), now, ends_at, person, refresh_token, token)
        session = self._fitted(session)
        if self._is_too_long(session):
            raise _LoginRefused("Your groups, or your token, are too long for a cookie.", 403)
        response.headers.append("Set-Cookie", self._session_cookie(request, session))
        response.headers["Cache-Control"] = "no-store"

    def _fitted(self, session: BrowserSession) -> BrowserSession:
        """The session as a cookie can hold it: if need be without groups that no rule names, then without its refresh
        token. People go through the provider again when such a session ends, which seldom asks them anything.
        """
        if self._is_too_long(session) and session.person is not None and self._people is not None:
            session = msgspec.structs.replace(session, person=self._people.without_idle_groups(session.person))
        return msgspec.structs.replace(session, refresh_token="") if self._is_too_long(session) else session

    def _is_too_long(self, session: BrowserSession) -> bool:
        return len(self._sealer.seal(_SESSION, session)) > LONGEST_COOKIE

    async def _take_typed_token(self, request: Request) -> Response:
        if not self._page.takes_tokens or is_of_other_site(request):
            return text_response("this server takes no tokens from other pages", 403)
        form = parse_qs((await short_body(request)).decode(errors="replace"))
        token, next_path = (form.get(name, [""])[0].strip() for name in ("token", "next"))
        next_path = local_path(next_path)
        if await self._caller(token) is None:
            return sign_in_page(self._page, next_path, problem="This token is not accepted.", status=403)
        response = RedirectResponse(next_path, 303)
        self._begin(request, response, token=token)
        return response

    async def _sign_out(self, request: Request) -> Response:
        """End the session here at once, at other replicas by its life, and at the provider where it can be told."""
        if request.method != "POST" or is_of_other_site(request) or self._is_of_another_site(request):
            return text_response("signing out is a POST of our own pages", 403)
        session, url = self._session_of(request), ""
        if session is not None:
            self._ended.put(session.id, True)
        if session is not None and self._people is not None and session.person is not None:
            url = await self._sign_out_at_provider(session)
        response = signed_out_page(self._page, url)
        self._set_cookie(response, self._cookie_name(SESSION_COOKIE), "", 0)
        return response

    async def _sign_out_at_provider(self, session: BrowserSession) -> str:
        """Where the browser goes next; empty where there is no such place, or it does not answer."""
        if self._people is None:
            return ""
        try:
            flow = await self._people.flow()
            if session.refresh_token:
                await flow.revoke(session.refresh_token)
            return await flow.logout_url(f"{self._settings.public_url}{LOGIN_PATH}")
        except Unavailable as exc:
            log.warning("signed out here, but not at the provider", error=str(exc))
            return ""

    def _is_of_another_site(self, request: Request) -> bool:
        """By what browsers say themselves, which no page can change."""
        return request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")

    @property
    def _redirect_uri(self) -> str:
        return f"{self._settings.public_url}{CALLBACK_PATH}"

    def _cookie_name(self, name: str) -> str:
        """With a prefix that keeps other hosts, and pages without TLS, from setting it."""
        return f"__Host-{name}" if self._is_secure else name

    def _attempt_name(self, state: str) -> str:
        """One for each login under way: several tabs may sign in at the same time."""
        return f"{self._cookie_name(ATTEMPT_COOKIE)}_{state[:8]}"

    def _session_cookie(self, connection: HTTPConnection, session: BrowserSession) -> str:
        sealed = self._sealer.seal(_SESSION, session)
        response = Response()
        seconds = max(0.0, self._end_of(session) - self._now())
        self._set_cookie(response, self._cookie_name(SESSION_COOKIE), sealed, seconds, by_tls=is_by_tls(connection))
        return response.headers["set-cookie"]

    def _set_cookie(self, response: Response, name: str, value: str, seconds: float, *, by_tls: bool = False) -> None:
        secure = self._is_secure or by_tls
        response.set_cookie(name, value, int(seconds), secure=secure, httponly=True, samesite="lax", path="/")

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _path_of(connection: HTTPConnection) -> str:
    url = connection.url
    return f"{url.path}?{url.query}" if url.query else url.path


_WORDS: Final = {
    "access_denied": "The identity provider says that you may not, or you said no there.",
    "login_required": "The identity provider wants you to sign in.",
    "temporarily_unavailable": "The identity provider is not available. Please try again.",
    "server_error": "The identity provider had a problem. Please try again.",
}


def _in_words(error: str) -> str:
    """A provider's code in words. What is not known is not repeated: anybody can write it into a link."""
    return _WORDS.get(error, "The identity provider refused the login. Whoever set up this server should look.")
