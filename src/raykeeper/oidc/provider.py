"""An identity provider's own description and keys, fetched when they are needed."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from raykeeper.clock import Clock
from raykeeper.errors import Misconfigured, Unavailable
from raykeeper.logs import Log

DISCOVERY: Final = "/.well-known/openid-configuration"
FETCH_SECONDS: Final = 10.0
BODY_BYTES: Final = 1 << 20
"""Of a description or a set of keys; those of large providers have 20 KB."""
MOST_KEYS: Final = 100
KEYS_SECONDS: Final = 3600.0
"""Keys are fetched again after this long, so that one that was withdrawn ends."""
REFETCH_SECONDS: Final = 10.0
"""A token with an unknown key makes us look for new ones, but no more often than this: anybody can make up a key id."""
RETRY_SECONDS: Final = 1.0
"""After a fetch that failed, while there are no keys at all."""
RENEWAL_SECONDS: Final = 2.0
"""That callers wait for newer keys where there are old ones; a provider that is silent keeps nobody longer."""

log = Log("raykeeper.oidc")


class Description(msgspec.Struct, frozen=True):
    """What a provider says about itself; what it does not have is empty."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    end_session_endpoint: str = ""
    revocation_endpoint: str = ""
    device_authorization_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    authorization_response_iss_parameter_supported: bool = False
    """Whether each answer to the browser says whose it is (RFC 9207)."""


class _PublishedKeys(msgspec.Struct):
    """A set of keys, before anybody looked at one of them."""

    keys: list[Any]


@dataclass
class Provider:
    """One issuer. Keys are kept, and used on while the provider is away."""

    issuer: str
    """Its URL, exactly as it stands in tokens."""
    clock: Clock
    ca_file: Path | None = None
    """Whom to trust instead of the machine's own authorities."""
    _keys: KeySet | None = None
    _description: Description | None = None
    _tls: ssl.SSLContext | None = None
    _fetched_at: float = 0.0
    _next_fetch_at: float = float("-inf")
    _fetch: asyncio.Task[None] | None = None
    _problem: str = "its keys are not known yet"

    def __post_init__(self) -> None:
        url = urlsplit(self.issuer)
        is_local = url.scheme == "http" and url.hostname in ("localhost", "127.0.0.1", "::1")
        if not url.hostname or url.query or url.fragment or not (url.scheme == "https" or is_local):
            raise Misconfigured("--oidc-issuer-url", self.issuer, "use an https URL without a query")

    async def keys(self, *, is_unknown: bool = False) -> KeySet:
        """The provider's public keys; `is_unknown` says that the last ones were not enough. Raises `Unavailable`."""
        now, is_needed = self.clock.steady(), self._keys is None or is_unknown
        if is_needed or now - self._fetched_at > KEYS_SECONDS:
            if self._fetch is None and now >= self._next_fetch_at:
                self._fetch = asyncio.create_task(self._renew(), name="keys of the identity provider")
            if self._fetch is not None:
                # One fetch for all. Who gives up does not end it: the others wait, and it counts as tried.
                await asyncio.wait([self._fetch], timeout=None if is_needed else RENEWAL_SECONDS)
        if self._keys is None:
            raise Unavailable(f"identity provider {self.issuer}", self._problem, retry_after=5.0)
        return self._keys

    async def description(self) -> Description:
        """What the provider says about itself, as of its last keys. Raises `Unavailable`."""
        await self.keys()
        if self._description is None:
            raise Unavailable(f"identity provider {self.issuer}", self._problem, retry_after=5.0)
        return self._description

    def session(self) -> aiohttp.ClientSession:
        """A client that trusts whom the settings trust, and waits for nobody long."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self.ca_file)
        tls = self._tls
        timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
        return aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=tls))

    async def _renew(self) -> None:
        began, pause = self.clock.steady(), REFETCH_SECONDS
        try:
            self._keys, self._fetched_at = await self._fetched_keys(), began
        except Unavailable as exc:
            self._problem = exc.cause
            pause = RETRY_SECONDS if self._keys is None else REFETCH_SECONDS
            log.warning("keys of the identity provider not fetched, old ones go on", error=str(exc))
        finally:
            # From its end: one that took all of its time must not be followed by the next at once.
            self._next_fetch_at = self.clock.steady() + pause
            self._fetch = None

    async def _fetched_keys(self) -> KeySet:
        service = f"identity provider {self.issuer}"
        async with self.session() as session:
            described = await _fetched(session, service, self.issuer.rstrip("/") + DISCOVERY)
            try:
                description = msgspec.json.decode(described, type=Description)
            except (msgspec.DecodeError, RecursionError) as exc:
                raise Unavailable(service, f"its description cannot be read ({exc})") from exc
            if description.issuer != self.issuer:
                # Otherwise one provider could answer for another (OpenID Connect Discovery, 4.3).
                raise Unavailable(service, f"it calls itself {description.issuer[:200]!r}")
            if urlsplit(description.jwks_uri).scheme != urlsplit(self.issuer).scheme:
                raise Unavailable(service, "its keys are at an address of another scheme")
            keys = _key_set(service, await _fetched(session, service, description.jwks_uri))
            self._description = description
            return keys


async def _fetched(session: aiohttp.ClientSession, service: str, url: str) -> bytes:
    try:
        async with session.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise Unavailable(service, f"{url} answered {response.status}")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > BODY_BYTES:
                    raise Unavailable(service, f"{url} answered more than {BODY_BYTES} bytes")
            return bytes(body)
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        raise Unavailable(service, f"{url}: {exc or type(exc).__name__}") from exc


def _key_set(service: str, body: bytes) -> KeySet:
    """The keys that we can use: one of a kind that we do not know must not cost the others."""
    try:
        keys = msgspec.json.decode(body, type=_PublishedKeys).keys
    except (msgspec.DecodeError, RecursionError) as exc:
        raise Unavailable(service, f"its keys cannot be read ({exc})") from exc
    usable = []
    for key in keys[:MOST_KEYS]:
        if not isinstance(key, dict) or key.get("kty") == "oct":  # a secret that everybody can fetch signs anything
            continue
        try:
            usable += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            continue
    if not usable:
        raise Unavailable(service, "it has no keys that can be used")
    return KeySet(usable)
