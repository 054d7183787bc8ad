"""A receiver as a server of its own in the test's process: it notes what it is told, and may be away for a while."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Listening:
    """`status` is what it answers; only what it took with 2xx counts as told."""

    url: str = ""
    status: int = 200
    seconds: float = 0.0
    """That it takes for an answer."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """A request came, answered or not."""
    refused: int = 0
    told: list[Any] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        body = await request.text()
        self.begun.set()
        await asyncio.sleep(self.seconds)
        if not 200 <= self.status < 300:
            self.refused += 1
            return web.Response(status=self.status, headers={"Location": self.url + "/elsewhere"})
        self.told.append(json.loads(body))
        self.keys.append(request.headers.get("Idempotency-Key", ""))
        self.headers.append(dict(request.headers))
        return web.Response(status=self.status)

    @property
    def jobs(self) -> Counter[str]:
        """How often it was told of each job."""
        return Counter(one["job"]["name"] for one in self.told)


@asynccontextmanager
async def listening() -> AsyncIterator[Listening]:
    receiver, app = Listening(), web.Application()
    app.router.add_post("/{tail:.*}", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
