"""Clients of Ray heads: direct, or by way of the API server, with the cluster's token and tight limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qsl

from raykeeper.api.raycluster import RayCluster
from raykeeper.clock import Clock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.proxied import ask
from raykeeper.operator.rayhead.address import HeadAddress
from raykeeper.operator.rayhead.token import Tokens
from raykeeper.ray.dashboard import MIB, WANTS_ANOTHER_TOKEN, Answer, Dashboard, Limits
from raykeeper.ray.errors import OversizedAnswer, RayRefused
from raykeeper.ray.exchange import Outgoing
from raykeeper.ray.heads import Head

ANSWER_SECONDS: Final = 2.0
"""KubeRay's limit. A reconcile waits so long for an order at most; questions are asked in the background."""
PROXIED_SECONDS: Final = 10.0
"""KubeRay's limit by way of the API server; here for questions alone, which nobody waits for."""
LARGE_AT_ONCE: Final = 4
"""Large answers that are read at the same time: each of some hundred heads could send one."""
LIMITS: Final = Limits(connect_seconds=ANSWER_SECONDS, answer_seconds=ANSWER_SECONDS, body_bytes=8 * MIB)


@dataclass(frozen=True)
class Heads:
    """Makes clients of heads. One per process; a client is made for each cluster and address, and holds nothing."""

    kube: Kube
    """Its fence keeps orders back, too, once another process may lead."""
    tokens: Tokens
    is_proxied: bool
    """Whether heads are reached through the API server (`--use-kubernetes-proxy`)."""
    large_answers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))

    @classmethod
    def by(cls, kube: Kube, clock: Clock, *, is_proxied: bool) -> Heads:
        return cls(kube, Tokens(kube, clock), is_proxied)

    def of(self, cluster: RayCluster, address: HeadAddress, seconds: float = ANSWER_SECONDS) -> Head:
        """The head of a cluster: its dashboard, or whatever else the address leads to.

        `seconds`: for a whole answer, where nobody waits for it and the head is known to be slow.
        """
        if self.is_proxied:
            return ProxiedHead(self.kube, self.tokens, cluster, address, seconds)
        limits = replace(LIMITS, answer_seconds=seconds, large_answers=self.large_answers)
        return DirectHead(self.kube.ensure_writable, self.tokens, cluster, address, limits)


class DirectHead:
    """A head that is reached by its own address, each time over a connection of its own."""

    def __init__(
        self,
        ensure_leading: Callable[[], None],
        tokens: Tokens,
        cluster: RayCluster,
        address: HeadAddress,
        limits: Limits,
    ) -> None:
        self._ensure_leading = ensure_leading
        self._tokens = tokens
        self._cluster = cluster
        self._address = address
        self._limits = limits
        self.service = f"Ray head {address.authority}"

    async def get(self, path: str) -> Answer:
        return await self._answer(Outgoing(path))

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        return await self._answer(Outgoing(path, method, body, self._ensure_leading))

    async def _answer(self, outgoing: Outgoing) -> Answer:
        seconds = self._limits.answer_seconds
        try:
            async with asyncio.timeout(seconds):
                credentials = await self._tokens.credentials(self._cluster)
                return await Dashboard(self._address.authority, credentials, self._limits).ask(outgoing)
        except TimeoutError as exc:
            raise Unavailable(self.service, f"no answer to {outgoing.path} within {seconds:g} s") from exc
        except RayRefused:
            self._tokens.forget(self._cluster)
            raise


class ProxiedHead:
    """A head that the API server passes requests on to."""

    def __init__(
        self, kube: Kube, tokens: Tokens, cluster: RayCluster, address: HeadAddress, order_seconds: float
    ) -> None:
        self._kube = kube
        self._tokens = tokens
        self._cluster = cluster
        self._backend = address.backend
        self._order_seconds = order_seconds
        self.service = f"Ray head {address.backend} by way of the API server"

    async def get(self, path: str) -> Answer:
        return await self._answer("GET", path, None, PROXIED_SECONDS)

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        return await self._answer(method, path, body, self._order_seconds)

    async def _answer(self, method: str, path: str, body: bytes | None, seconds: float) -> Answer:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._relayed(method, path, body)
        except TimeoutError as exc:
            raise Unavailable(self.service, f"no answer to {path} within {seconds:g} s") from exc
        except ApiError as exc:
            raise Unavailable(self.service, str(exc)) from exc
        if answer.status in WANTS_ANOTHER_TOKEN:
            self._tokens.forget(self._cluster)
            raise RayRefused(self.service, answer.status)
        if len(answer.body) > LIMITS.body_bytes:
            raise OversizedAnswer(self.service, path, LIMITS.body_bytes)
        return answer

    async def _relayed(self, method: str, path: str, body: bytes | None) -> Answer:
        plain, _, query = path.partition("?")
        headers = (await self._tokens.credentials(self._cluster)).headers()
        # `Authorization` is for the API server; Ray takes the other spelling as well.
        own = {name: value for name, value in headers.items() if name != "Authorization"}
        answer = await ask(
            self._kube, self._backend, plain, method=method, query=dict(parse_qsl(query)), body=body, headers=own
        )
        return Answer(answer.status, answer.body, answer.headers.get("Content-Type", ""))
