"""From the header `Authorization` to a caller: one class for each mode of `--auth`."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from raykeeper.api.syntax import is_user_name
from raykeeper.apiserver.errors import CallFailed, Code
from raykeeper.apiserver.settings import AccessToken
from raykeeper.errors import Unavailable
from raykeeper.kube.attributes import attributes_of
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import Forbidden
from raykeeper.kube.http.requests import Request
from raykeeper.kube.http.transport import Guard
from raykeeper.kube.reviews import AccessReviews, TokenReviews, User
from raykeeper.oidc.errors import TokenRefused

if TYPE_CHECKING:
    from raykeeper.oidc.tokens import IdTokens  # not for those who use another mode

LONGEST_HEADER: Final = 16 * 1024
"""Of `Authorization`; tokens of Kubernetes have one or two kilobytes."""
DESCRIPTIONS: Final = "authentication.kubernetes.io/"
"""Of a token: the pod and node it was made for, and its id."""
MISSING: Final = "a bearer token is needed: send the header Authorization: Bearer <token>"


@dataclass(frozen=True)
class Caller:
    """Somebody who was let in."""

    name: str
    """As the access log calls them; empty where nobody asked."""
    kube: Kube
    """Kubernetes in their rights."""
    shows_own_token: bool = False
    """Whether Kubernetes itself sees who it is, so that headers of theirs count for nobody else."""


class Authenticator(Protocol):
    """Lets callers in."""

    async def caller(self, authorization: str | None) -> Caller:
        """Whoever sends this header. Raises `CallFailed`."""


@dataclass(frozen=True)
class Everybody:
    """Whoever reaches us, with our own rights."""

    kube: Kube

    async def caller(self, authorization: str | None) -> Caller:  # noqa: ARG002 - nobody is asked for it
        return Caller("", self.kube)


class OwnTokens:
    """Whoever shows a token of ours, with our own rights; bare, as KubeRay's clients send it, or as a bearer token."""

    def __init__(self, kube: Kube, tokens: Sequence[AccessToken]) -> None:
        self._kube = kube
        self._tokens = [(token.token.encode(), token.namespaces) for token in tokens]

    async def caller(self, authorization: str | None) -> Caller:
        shown = bearer_token(authorization) or _bare(authorization)
        if not shown:
            raise unauthenticated(MISSING)
        text = shown.encode()
        # All are compared, each in constant time: how long it takes says nothing about which one is nearly right.
        found = [place for place, (token, _) in enumerate(self._tokens) if hmac.compare_digest(text, token)]
        if not found:
            raise unauthenticated("the token is not accepted")
        namespaces = self._tokens[found[0]][1]
        kube = self._kube.with_guard(_only_in(namespaces)) if namespaces else self._kube
        return Caller(f"token {found[0] + 1}", kube)


def _only_in(namespaces: frozenset[str]) -> Guard:
    async def guard(request: Request) -> None:
        attributes = attributes_of(request.method, request.path)
        if attributes.namespace not in namespaces:
            raise Forbidden(request.about, 403, "Forbidden", f"this token cannot {attributes}")

    return guard


@dataclass(frozen=True)
class PassedOn:
    """Whoever shows a bearer token: Kubernetes sees it with each request, and decides."""

    kube: Kube

    async def caller(self, authorization: str | None) -> Caller:
        token = bearer_token(authorization)
        if not token:
            raise unauthenticated(MISSING)
        return Caller("token passed on", self.kube.as_caller(token), shows_own_token=True)


@dataclass(frozen=True)
class Rights:
    """What somebody whom we know may do: in their name, or with our rights after asking whether they may."""

    kube: Kube
    reviews: AccessReviews
    impersonate: bool

    def kube_of(self, user: User) -> Kube:
        if self.impersonate:
            _check_impersonated(user)
            return self.kube.impersonating(user.name, user.groups)
        return self.kube.with_guard(self._reviewed(user))

    def _reviewed(self, user: User) -> Guard:
        async def guard(request: Request) -> None:
            attributes = attributes_of(request.method, request.path)
            if not await self.reviews.may(user, attributes):
                raise Forbidden(request.about, 403, "Forbidden", attributes.refusal(f'User "{user.name}"'))

        return guard


def _check_impersonated(user: User) -> None:
    """Raise `CallFailed` for whom headers of ours would make somebody else, or somebody who may do more."""
    if not all(is_user_name(text) for text in (user.name, *user.groups)):
        raise unauthenticated("the token names a user or group that cannot be impersonated")
    # Such as the scopes of an OpenShift token, which take rights away. Those of Kubernetes itself only describe.
    lost = [name for name, _ in user.extra if not name.startswith(DESCRIPTIONS)]
    if lost:
        problem = f"--impersonate would lose what the token says by {', '.join(lost)[:200]}"
        raise unauthenticated(f"{problem}: use a token without it, or a server without --impersonate")


@dataclass(frozen=True)
class KubernetesTokens:
    """Whoever shows a token that Kubernetes knows."""

    tokens: TokenReviews
    rights: Rights

    async def caller(self, authorization: str | None) -> Caller:
        token = bearer_token(authorization)
        if not token:
            raise unauthenticated(MISSING)
        try:
            verdict = await self.tokens.review(token)
        except Unavailable as exc:
            raise CallFailed(Code.Unavailable, str(exc)) from exc
        if verdict.user is None:
            raise unauthenticated(verdict.problem)
        return Caller(verdict.user.name, self.rights.kube_of(verdict.user))


@dataclass(frozen=True)
class OidcTokens:
    """Whoever shows an ID token of the identity provider."""

    tokens: IdTokens
    rights: Rights

    async def caller(self, authorization: str | None) -> Caller:
        token = bearer_token(authorization)
        if not token:
            raise unauthenticated(MISSING)
        try:
            named = await self.tokens.verify(token)
        except TokenRefused as exc:
            raise unauthenticated(f"the ID token is not accepted: {exc}") from exc
        except Unavailable as exc:
            raise CallFailed(Code.Unavailable, str(exc)) from exc
        # As Kubernetes itself does with everybody whose token it has checked.
        user = User(named.user, (*named.groups, "system:authenticated"))
        return Caller(user.name, self.rights.kube_of(user))


def unauthenticated(problem: str) -> CallFailed:
    return CallFailed(Code.Unauthenticated, problem)


def bearer_token(authorization: str | None) -> str:
    """The token of a bearer header; empty for any other."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    is_usable = scheme.lower() == "bearer" and len(token) <= LONGEST_HEADER and token.isascii() and token.isprintable()
    return token if is_usable and " " not in token else ""


def _bare(authorization: str | None) -> str:
    text = (authorization or "").strip()
    return text if len(text) <= LONGEST_HEADER and text.isascii() else ""
