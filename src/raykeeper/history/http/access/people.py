"""People whom an identity provider vouches for: who somebody is, by the provider's tokens, and what they see here."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import RaykeeperError
from raykeeper.history.access_rules import Person
from raykeeper.history.bounded import Bounded
from raykeeper.history.http.access.callers import Caller
from raykeeper.history.http.access.reviews import NamespaceReviews
from raykeeper.history.settings import AuthMode, LoginSettings
from raykeeper.history.visibility import NOTHING, Visibility
from raykeeper.kube.reviews import KEPT_SECONDS, MOST_KEPT, User
from raykeeper.oidc.code_flow import Client, CodeFlow, Tokens
from raykeeper.oidc.errors import TokenRefused
from raykeeper.oidc.provider import Provider
from raykeeper.oidc.tokens import LONGEST_TOKEN, IdTokens

_NAME_CHARS: Final = 200
_NAMES: Final = ("name", "upn", "preferred_username", "login_name", "email", "sub")
"""Claims by which people are called, the first that is there; `upn` and `login_name` are RAM's."""
RAM_SCOPES: Final = ("openid", "aliuid", "profile")
OIDC_SCOPES: Final = ("openid", "profile", "email")
_OFFLINE: Final = "offline_access"


class PersonRefused(RaykeeperError):
    """Somebody is who they say, and may not come in."""

    def __init__(self, person: Person, why: str) -> None:
        super().__init__(why)
        self.person = person
        self.why = why


class People:
    """Everybody at one provider."""

    def __init__(
        self, mode: AuthMode, settings: LoginSettings, clock: Clock, reviews: NamespaceReviews | None = None
    ) -> None:
        self._settings = settings
        self._reviews = reviews
        self._nonce_is_needed = mode != "ram"  # RAM does not promise to hand it back
        self.provider = Provider(settings.oidc.issuer_url, clock, settings.oidc.ca_file)
        scopes = settings.scopes or (RAM_SCOPES if mode == "ram" else OIDC_SCOPES)
        extra = {"access_type": "offline"} if mode == "ram" else {}
        self._client = Client(settings.oidc.client_id, settings.client_secret, scopes, extra)
        self._asks_offline = not settings.scopes and mode == "oidc"
        self._tokens = IdTokens(settings.oidc, self.provider, clock)
        of_cli = replace(settings.oidc, client_id=settings.cli_client_id)
        self._of_programs = [self._tokens]
        self._clock = clock
        self._checked: Bounded[bytes, tuple[float, Person]] = Bounded(MOST_KEPT)
        if settings.cli_client_id:
            self._of_programs.append(IdTokens(of_cli, self.provider, clock))

    async def flow(self) -> CodeFlow:
        """The way to sign in. A refresh token is asked for where the provider says that it knows how."""
        client = self._client
        if self._asks_offline and _OFFLINE in (await self.provider.description()).scopes_supported:
            client = Client(client.id, client.secret, (*client.scopes, _OFFLINE), client.extra)
        return CodeFlow(self.provider, client)

    async def identify(self, tokens: Tokens, nonce: str) -> Person:
        """Whom fresh tokens name. Raises `TokenRefused` and `Unavailable`."""
        claims = await self._tokens.claims(tokens.id_token)
        shown = claims.get("nonce")
        is_ours = isinstance(shown, str) and hmac.compare_digest(shown.encode(), nonce.encode())
        if not is_ours and (shown is not None or self._nonce_is_needed):
            raise TokenRefused("it was made for another login")
        return self._person(claims)

    async def identify_again(self, tokens: Tokens, known: Person) -> Person:
        """Whom refreshed tokens name, who must be the same. Providers need not send an ID token then."""
        if not tokens.id_token:
            return known
        person = self._person(await self._tokens.claims(tokens.id_token))
        if person.uid != known.uid:
            raise TokenRefused("it is another person's")
        return person

    async def caller_of(self, person: Person, *, can_sign_out: bool) -> Caller:
        """What somebody sees now. Raises `PersonRefused` and `Unavailable`."""
        if why := self._settings.rules.refusal(person):
            raise PersonRefused(person, why)
        visibility = await self._visibility(person)
        if visibility == NOTHING:
            raise PersonRefused(person, "Kubernetes lets you get RayClusters in no namespace that has history here.")
        shown = person.email or person.name or person.user
        return Caller(shown, visibility, can_sign_out, account=person.email or person.user)

    def without_idle_groups(self, person: Person) -> Person:
        """The same person without groups that say nothing here; Kubernetes may have rules for any of them."""
        if self._reviews is not None:
            return person
        return replace(person, groups=tuple(group for group in person.groups if self._settings.rules.knows(group)))

    async def caller(self, token: str) -> Caller | None:
        """Whoever shows an ID token of the provider; None for any other token. Raises as `caller_of` does."""
        if _issuer_of(token) != self._settings.oidc.issuer_url:
            return None
        digest = hashlib.sha256(token.encode()).digest()  # the token itself stays out of memory
        until, person = self._checked.get(digest) or (0.0, None)
        if person is None or self._clock.steady() >= until:
            person = await self._person_of(token)
            if person is None:
                return None
            self._checked.put(digest, (self._clock.steady() + KEPT_SECONDS, person))
        return await self.caller_of(person, can_sign_out=False)

    async def _person_of(self, token: str) -> Person | None:
        for tokens in self._of_programs:
            try:
                return self._person(await tokens.claims(token))
            except TokenRefused:
                continue
        return None

    @property
    def cli_login(self) -> dict[str, object] | None:
        """What `raykeeper login` must know; None where there is no such login."""
        if not self._settings.cli_client_id:
            return None
        known = {"issuer": self._settings.oidc.issuer_url, "client_id": self._settings.cli_client_id}
        return {**known, "scopes": list(self._client.scopes)}

    async def _visibility(self, person: Person) -> Visibility:
        if self._reviews is None:
            return self._settings.rules.visibility(person)
        # As Kubernetes itself does with everybody whose token it has checked.
        return await self._reviews.visibility(User(person.user, (*person.groups, "system:authenticated")))

    def _person(self, claims: Mapping[str, Any]) -> Person:
        named = self._tokens.named(dict(claims))
        email = claims.get("email")
        is_verified = isinstance(email, str) and claims.get("email_verified") is True
        if self._settings.oidc.username_claim == "email" and not is_verified:
            # kube-apiserver lets a provider pass that says nothing; at some anybody can write any address there.
            raise TokenRefused("its e-mail address is not verified")
        return Person(
            user=named.user,
            name=next((text for name in _NAMES if (text := _short(claims.get(name)))), ""),
            uid=_short(claims.get("uid")) or _short(claims.get("sub")),
            email=_short(email) if is_verified else "",
            groups=named.groups,
        )


def _short(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _NAME_CHARS and value.isprintable() else ""


def _issuer_of(token: str) -> str:
    """What an ID token says, unproved, about who made it; empty for no ID token."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST_TOKEN:
        return ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ""
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else ""
