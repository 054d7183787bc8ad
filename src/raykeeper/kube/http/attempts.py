"""One request over its attempts: renewing credentials after a 401, waiting as long as the server asks for."""

from __future__ import annotations

import asyncio

from raykeeper.kube.connect.credentials import Credentials, Identity
from raykeeper.kube.http.answers import Answer, retry_delay
from raykeeper.kube.http.requestmetrics import RequestMetrics


class Attempts:
    """How often one request was sent, and as whom."""

    def __init__(self, credentials: Credentials, method: str, metrics: RequestMetrics, identity: Identity) -> None:
        self.identity = identity
        self._credentials = credentials
        self._method = method
        self._metrics = metrics
        self._made = 0
        self._renewed = False

    @classmethod
    async def begin(cls, credentials: Credentials, method: str, metrics: RequestMetrics) -> Attempts:
        return cls(credentials, method, metrics, await credentials.current())

    async def again(self, answer: Answer) -> bool:
        """Whether to send once more after a refusal; returns when that is due, with `identity` renewed if need be."""
        self._made += 1
        if answer.status == 401 and not self._renewed:
            self._renewed, refused = True, self.identity
            self.identity = await self._credentials.renew(refused)
            return self.identity is not refused
        delay = retry_delay(self._method, answer, self._made)
        if delay is None:
            return False
        self._metrics.repeated(self._method, answer.status)
        await asyncio.sleep(delay)
        return True
