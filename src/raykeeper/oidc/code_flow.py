"""The authorization code flow with PKCE: where a browser is sent, and what the provider gives for the code it brings
back.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from raykeeper.errors import Unavailable
from raykeeper.oidc.errors import TokenRefused
from raykeeper.oidc.provider import Provider

ANSWER_BYTES: Final = 64 * 1024
"""Of an answer to the question for tokens."""
_ERROR_CHARS: Final = 100


@dataclass(frozen=True)
class Client:
    """Who we are to the provider."""

    id: str
    secret: str = field(default="", repr=False)
    """Empty for a program on somebody's machine, which can keep none."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further parameters of the address that a browser is sent to."""


@dataclass(frozen=True)
class Attempt:
    """What ties one login to the browser that began it."""

    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier (S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def new_attempt() -> Attempt:
    return Attempt(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48))


class Tokens(msgspec.Struct, frozen=True):
    """What a provider gave."""

    id_token: str = ""
    access_token: str = ""
    refresh_token: str = ""


class CodeFlow:
    """Logins of one client at one provider."""

    def __init__(self, provider: Provider, client: Client) -> None:
        self.provider = provider
        self.client = client

    async def authorization_url(self, attempt: Attempt, redirect_uri: str) -> str:
        """Where the browser goes. Raises `Unavailable`."""
        described = await self.provider.description()
        endpoint = self._checked("authorization_endpoint", described.authorization_endpoint)
        parameters = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.client.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
            **self.client.extra,
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def check_issuer(self, shown: str | None) -> None:
        """Raise `TokenRefused` where the answer in the browser is another provider's (RFC 9207)."""
        described = await self.provider.description()
        if shown is None and described.authorization_response_iss_parameter_supported:
            raise TokenRefused("the answer does not say which identity provider it comes from")
        if shown is not None and shown != self.provider.issuer:
            raise TokenRefused("the answer comes from another identity provider")

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> Tokens:
        """Tokens for a code. Raises `TokenRefused` and `Unavailable`."""
        return await self._tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect_uri,
                "code_verifier": verifier,
            }
        )

    async def refresh(self, refresh_token: str) -> Tokens:
        """Newer tokens. Raises `TokenRefused` where the provider gives none any more, and `Unavailable`."""
        return await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def revoke(self, token: str) -> None:
        """Have the provider forget a token, where it can. Raises `Unavailable`."""
        endpoint = (await self.provider.description()).revocation_endpoint
        if endpoint:
            await self._post(self._checked("revocation_endpoint", endpoint), {"token": token})

    async def logout_url(self, return_to: str) -> str:
        """Where the browser goes to end its login at the provider, too; empty where there is no such place."""
        endpoint = (await self.provider.description()).end_session_endpoint
        if not endpoint:
            return ""
        parameters = {"client_id": self.client.id, "post_logout_redirect_uri": return_to}
        return (
            f"{self._checked('end_session_endpoint', endpoint)}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"
        )

    async def _tokens(self, form: Mapping[str, str]) -> Tokens:
        endpoint = self._checked("token_endpoint", (await self.provider.description()).token_endpoint)
        status, body = await self._post(endpoint, form)
        if status >= 500 or status == 429:
            raise Unavailable(self._service, f"{endpoint} answered {status}", retry_after=5.0)
        if status != 200:
            raise TokenRefused(f"the identity provider refused: {_error_code(body)}")
        try:
            return msgspec.json.decode(body, type=Tokens)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise TokenRefused("the identity provider's answer cannot be read") from exc

    async def _post(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Send a form with our name and secret in it, as every provider takes it, RAM too."""
        secret = {"client_secret": self.client.secret} if self.client.secret else {}
        body = bytearray()
        try:
            async with (
                self.provider.session() as session,
                session.post(
                    url, data={**form, "client_id": self.client.id, **secret}, allow_redirects=False
                ) as response,
            ):
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > ANSWER_BYTES:
                        raise Unavailable(self._service, f"{url} answered more than {ANSWER_BYTES} bytes")
                return response.status, bytes(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise Unavailable(self._service, f"{url}: {exc or type(exc).__name__}", retry_after=5.0) from exc

    def _checked(self, name: str, endpoint: str) -> str:
        """An endpoint that is as safe as the issuer. Raises `Unavailable`."""
        url = urlsplit(endpoint)
        if not url.hostname or url.scheme != urlsplit(self.provider.issuer).scheme:
            raise Unavailable(self._service, f"it has no {name} of the scheme of its own address")
        return endpoint

    @property
    def _service(self) -> str:
        return f"identity provider {self.provider.issuer}"


def _error_code(body: bytes) -> str:
    """The provider's code; its description may quote what was sent."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return "no reason given"
    code = found.get("error") if isinstance(found, dict) else None
    return code[:_ERROR_CHARS] if isinstance(code, str) and code.isprintable() else "no reason given"
