"""Who we are to the API server, read again when it runs out or is refused."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from raykeeper.clock import Clock
from raykeeper.errors import Misconfigured, RaykeeperError, Unavailable
from raykeeper.kube.connect.tls import TlsMaterial, tls_context
from raykeeper.logs import Log

log = Log("raykeeper.kube.credentials")

EARLY_SECONDS = 30.0
"""Credentials are renewed this long before they expire: a request may wait for the rate limit and travel."""
RETRY_SECONDS = 10.0
"""How soon a failed renewal is tried again while the old credentials still hold."""


@dataclass(frozen=True)
class Identity:
    """What one request shows the server: headers such as Authorization, and a client certificate inside `tls`."""

    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    """None for a server that speaks plain HTTP."""
    shown: str
    """What is shown, in words for messages: `the token`, `the client certificate`; empty for nothing."""
    expires_at: datetime | None = None
    repeated: tuple[tuple[str, str], ...] = ()
    """Headers that may stand there several times, as those of impersonation do."""
    trust: ssl.SSLContext | None = None
    """`tls` without our own certificate: for requests that show somebody else's credentials."""
    source: str = ""
    """Where they are from, if not from where ours are."""

    def why_refused(self, source: str, now: datetime) -> str:
        """What to tell a person after a 401, whose own message never says more than "Unauthorized"."""
        source = self.source or source
        if not self.shown:
            return f"there are no credentials in {source}, and the server takes no anonymous requests"
        if self.expires_at is not None and self.expires_at <= now:
            return f"{self.shown} from {source} expired at {self.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        return f"{self.shown} from {source} is not accepted by the server"


class Credentials(Protocol):
    """An identity over time."""

    async def current(self) -> Identity:
        """The identity for the next request, renewed first where it is known to run out."""

    async def renew(self, refused: Identity) -> Identity:
        """A newer identity after the server refused one with 401; `refused` itself where there is none."""


@dataclass(frozen=True)
class Login:
    """What one reading of the source of credentials gave."""

    headers: Mapping[str, str] = field(default_factory=dict)
    tls: TlsMaterial | None = None
    shown: str = ""
    expires_at: datetime | None = None
    max_age_seconds: float | None = None
    """Read again after this long even if it has not expired, because a file may have been replaced."""


class RenewedCredentials:
    """Credentials from a source that can be read again: files, an exec plugin, an identity provider."""

    def __init__(self, source: str, read: Callable[[], Awaitable[Login]], first: Login, clock: Clock) -> None:
        self._source = source
        self._read = read
        self._clock = clock
        self._reading = asyncio.Lock()
        self._readings = 0
        self._identity = self._identity_of(first)
        self._accept(first)

    async def current(self) -> Identity:
        if self._clock.steady() >= self._read_again_at:
            await self._read_again()
        return self._identity

    async def renew(self, refused: Identity) -> Identity:
        if self._identity is refused:
            await self._read_again()
        return self._identity

    async def _read_again(self) -> None:
        """One reading for all who ask for it at the same time: an exec plugin may take seconds."""
        readings = self._readings
        async with self._reading:
            if self._readings != readings:
                return
            try:
                self._replace(await self._read())
            except RaykeeperError as exc:
                self._keep_or_give_up(exc)
            finally:
                self._readings += 1

    def _replace(self, login: Login) -> None:
        """A new identity where something changed; a changed token alone leaves TLS, and so open connections, alone."""
        if login.tls != self._login.tls:
            self._identity = self._identity_of(login)
        elif login.headers != self._login.headers:
            self._identity = replace(
                self._identity, headers=login.headers, shown=login.shown, expires_at=login.expires_at
            )
        self._accept(login)

    def _identity_of(self, login: Login) -> Identity:
        tls = trust = self._context_of(login)
        if login.tls is not None and login.tls.certificate is not None:
            trust = self._context_of(replace(login, tls=replace(login.tls, certificate=None, key=None)))
        return Identity(login.headers, tls, login.shown, login.expires_at, trust=trust)

    def _context_of(self, login: Login) -> ssl.SSLContext | None:
        try:
            return tls_context(login.tls) if login.tls else None
        except (ssl.SSLError, ValueError) as exc:
            raise Misconfigured("TLS", self._source, f"its certificates or key are broken ({exc})") from exc

    def _keep_or_give_up(self, exc: RaykeeperError) -> None:
        expires_at = self._login.expires_at
        if expires_at is not None and expires_at <= self._clock.now():
            raise Unavailable(f"credentials from {self._source}", str(exc)) from exc
        log.warning("credentials not renewed, the old ones go on", source=self._source, cause=str(exc))
        self._read_again_at = self._clock.steady() + RETRY_SECONDS

    def _accept(self, login: Login) -> None:
        self._login = login
        self._read_again_at = self._clock.steady() + _lifetime(login, self._clock.now())


def _lifetime(login: Login, now: datetime) -> float:
    """Seconds until the source is to be read again."""
    seconds = login.max_age_seconds if login.max_age_seconds is not None else float("inf")
    if login.expires_at is None:
        return seconds
    left = (login.expires_at - now).total_seconds()
    # Something that lives shorter than our margin is used for half of its life, not renewed for every request.
    return min(seconds, max(left - EARLY_SECONDS, left / 2, 0.0))


class _Claims(msgspec.Struct):
    exp: float | None = None


def token_end(token: str) -> datetime | None:
    """When a JSON web token expires by its own words; None for other tokens."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
    except (ValueError, msgspec.DecodeError):
        return None
    return datetime.fromtimestamp(claims.exp, UTC) if claims.exp else None
