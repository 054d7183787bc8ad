"""What Kubernetes says somebody may see: whoever may get RayClusters of a namespace may see its history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.history.http.access.callers import Caller
from raykeeper.history.visibility import EVERYTHING, Visibility
from raykeeper.kube.attributes import Attributes
from raykeeper.kube.client import Kube
from raykeeper.kube.reviews import AccessReviews, Remembered, TokenReviews, User

MOST_NAMESPACES: Final = 5_000
"""Asked about for one caller who may not see all of them."""
_AT_ONCE: Final = 16

Namespaces = Callable[[], Awaitable[frozenset[str]]]
"""Those that the store has anything of."""


class NamespaceReviews:
    """Which namespaces users see, remembered for ten seconds.

    Guarantees: a right that was taken away counts no longer after `KEPT_SECONDS` of `kube.reviews`; what cannot be
    found out raises `Unavailable` and is never a yes.
    """

    def __init__(self, kube: Kube, clock: Clock, namespaces: Namespaces) -> None:
        self._reviews = AccessReviews(kube, clock)
        self._namespaces = namespaces
        self._remembered: Remembered[Visibility] = Remembered(clock)
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def visibility(self, user: User) -> Visibility:
        """Raises `Unavailable`."""
        return await self._remembered.find(user, lambda: self._ask(user))

    async def _ask(self, user: User) -> Visibility:
        if await self._may_get(user, ""):
            return EVERYTHING
        names = sorted(await self._namespaces())
        if len(names) > MOST_NAMESPACES:
            raise Unavailable("access reviews", f"the store has more than {MOST_NAMESPACES} namespaces")
        answers = await asyncio.gather(*(self._may_get(user, name) for name in names))
        return Visibility(frozenset(name for name, may in zip(names, answers, strict=True) if may))

    async def _may_get(self, user: User, namespace: str) -> bool:
        """An empty namespace stands for all of them."""
        async with self._asking:
            asked = Attributes("get", group="ray.io", version="v1", resource="rayclusters", namespace=namespace)
            return await self._reviews.ask(user, asked)


class KubernetesTokens:
    """Whoever shows a token that Kubernetes knows."""

    def __init__(self, tokens: TokenReviews, reviews: NamespaceReviews) -> None:
        self._tokens = tokens
        self._reviews = reviews

    async def caller(self, token: str) -> Caller | None:
        """Whose token it is, and what they see; None for a token that Kubernetes does not accept."""
        verdict = await self._tokens.review(token)
        if verdict.user is None:
            return None
        name = verdict.user.name
        return Caller(name, await self._reviews.visibility(verdict.user), account=name)
