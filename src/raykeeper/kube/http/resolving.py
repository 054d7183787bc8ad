"""Turns the API server's name into addresses, and counts how long that takes. Addresses never come here."""

from __future__ import annotations

import socket

from aiohttp import DefaultResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from raykeeper.clock import Clock
from raykeeper.kube.metrics import KubeMetrics


class TimedResolver(AbstractResolver):
    """The usual resolver with a clock beside it."""

    def __init__(self, metrics: KubeMetrics, clock: Clock) -> None:
        self._resolver = DefaultResolver()
        self._seconds = metrics.dns_seconds
        self._clock = clock

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        started = self._clock.steady()
        try:
            return await self._resolver.resolve(host, port, family)
        finally:
            self._seconds.labels(host).observe(self._clock.steady() - started)

    async def close(self) -> None:
        await self._resolver.close()
