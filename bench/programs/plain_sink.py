"""A sink that reads bodies and forgets them, in uvicorn's raw ASGI: what the machine does without a spool."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print("ready", listening.getsockname()[1], flush=True)
    settings = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", loop="asyncio")
    await uvicorn.Server(settings).serve([listening])


if __name__ == "__main__":
    asyncio.run(main())
