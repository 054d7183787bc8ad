"""The part of the dashboard client that the poller needs."""

from __future__ import annotations

from typing import Protocol

from raykeeper.ray.dashboard import Answer


class Asks(Protocol):
    async def get(self, path: str) -> Answer:
        """The answer to a GET. Raises Unavailable, RayRefused, OversizedAnswer."""
