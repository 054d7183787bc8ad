"""ID tokens: whether one is genuine, meant for us and still good, and whom it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from raykeeper.api.syntax import is_user_name
from raykeeper.clock import Clock
from raykeeper.oidc.errors import TokenRefused
from raykeeper.oidc.provider import Provider
from raykeeper.oidc.settings import OidcSettings

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
"""Those with a public key. `none`, and those with a shared secret, prove nothing here."""
LEEWAY_SECONDS: Final = 10
"""That clocks may differ by; Kubernetes' own number."""
LONGEST_TOKEN: Final = 16 * 1024
RESERVED_PREFIX: Final = "system:"
"""Of users and groups that Kubernetes itself gives rights to. No identity provider may hand them out."""


@dataclass(frozen=True)
class Named:
    """Whom a token names."""

    user: str
    groups: tuple[str, ...]


class IdTokens:
    """Checks tokens of one provider."""

    def __init__(self, settings: OidcSettings, provider: Provider, clock: Clock) -> None:
        self._settings = settings
        self._provider = provider
        self._clock = clock

    async def verify(self, token: str) -> Named:
        """Whom the token names. Raises `TokenRefused`, and `Unavailable` while the provider's keys are not known."""
        return self.named(await self.claims(token))

    async def claims(self, token: str) -> dict[str, Any]:
        """What a genuine token that is meant for us says. Raises as `verify` does."""
        if len(token) > LONGEST_TOKEN or token.count(".") != 2 or not token.isascii():
            raise TokenRefused("it is not an ID token")
        try:
            claims = _decoded(token, await self._provider.keys())
        except (InvalidKeyIdError, BadSignatureError):  # a new key need not have a new id, nor any
            claims = await self._with_new_keys(token)
        except (JoseError, ValueError, TypeError, RecursionError) as exc:
            raise TokenRefused(_reason(exc)) from exc
        self._check(claims)
        return claims

    async def _with_new_keys(self, token: str) -> dict[str, Any]:
        try:
            return _decoded(token, await self._provider.keys(is_unknown=True))
        except (JoseError, ValueError, TypeError, RecursionError) as exc:
            raise TokenRefused(_reason(exc)) from exc

    def _check(self, claims: dict[str, Any]) -> None:
        settings = self._settings
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.issuer_url},
            aud={"essential": True, "value": settings.client_id},
            exp={"essential": True},
        )
        try:
            registry.validate(claims)
        except (JoseError, ValueError, TypeError) as exc:
            raise TokenRefused(_reason(exc)) from exc
        for name, value in settings.required_claims:
            if claims.get(name) != value:
                raise TokenRefused(f"its claim {name!r} is not as required")

    def named(self, claims: dict[str, Any]) -> Named:
        settings = self._settings
        name = claims.get(settings.username_claim)
        if not isinstance(name, str) or not name:
            raise TokenRefused(f"its claim {settings.username_claim!r} names nobody")
        if settings.username_claim == "email" and claims.get("email_verified", True) is not True:
            raise TokenRefused("its e-mail address is not verified")
        user = _username_prefix(settings) + name
        groups = tuple(settings.groups_prefix + group for group in _groups(claims, settings.groups_claim))
        for text in (user, *groups):
            if text.startswith(RESERVED_PREFIX) or not is_user_name(text):
                raise TokenRefused("it names a user or group that only Kubernetes may")
        return Named(user, groups)


def _decoded(token: str, keys: KeySet) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    return claims


def _username_prefix(settings: OidcSettings) -> str:
    if settings.username_prefix:
        return "" if settings.username_prefix == "-" else settings.username_prefix
    return "" if settings.username_claim == "email" else f"{settings.issuer_url}#"


def _groups(claims: dict[str, Any], claim: str) -> list[str]:
    """The groups in a claim, which may be a list or, with some providers, one text."""
    found = claims.get(claim) if claim else None
    if found is None:
        return []
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list) or not all(isinstance(group, str) for group in found):
        raise TokenRefused(f"its claim {claim!r} is no list of groups")
    return found


def _reason(exc: Exception) -> str:
    """The library's word for what is wrong; its descriptions may quote the token."""
    return str(getattr(exc, "error", "") or "it cannot be read").replace("_", " ")
