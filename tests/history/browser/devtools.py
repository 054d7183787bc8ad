"""A client of Chromium's DevTools protocol: commands with their answers, events as they come, over one websocket."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

ANSWER_SECONDS = 120.0
SCREENSHOT_LIMIT_BYTES = 64 * 1024 * 1024  # one message has a whole picture

Json = dict[str, Any]
OnEvent = Callable[[str, Json], None]


class CommandRefused(Exception):
    """The browser could not do what it was told."""


class DevTools:
    """One connection to a browser; pages are told apart by their session's name."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._listeners: dict[str, OnEvent] = {}

    async def command(self, method: str, session: str | None = None, /, **parameters: Any) -> Json:
        """What the browser answers. Raises CommandRefused."""
        number = next(self._numbers)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer

    def listen(self, session: str, on_event: OnEvent) -> None:
        """Hand every event of that page to `on_event`, in order."""
        self._listeners[session] = on_event

    async def receive(self) -> None:
        """Deliver answers and events until the connection ends."""
        async for text in self._socket:
            message = json.loads(text)
            if "id" in message:
                self._deliver(message)
            elif (on_event := self._listeners.get(message.get("sessionId", ""))) is not None:
                on_event(message["method"], message["params"])

    def _deliver(self, message: Json) -> None:
        answer = self._waiting.pop(message["id"])
        if answer.done():
            return  # whoever asked has given up
        if "error" in message:
            answer.set_exception(CommandRefused(message["error"]["message"]))
        else:
            answer.set_result(message["result"])


@asynccontextmanager
async def devtools(address: str) -> AsyncIterator[DevTools]:
    """A connection to the browser at that address."""
    async with connect(address, max_size=SCREENSHOT_LIMIT_BYTES, proxy=None) as socket:
        client = DevTools(socket)
        receiving = asyncio.create_task(client.receive())
        try:
            yield client
        finally:
            receiving.cancel()
            await asyncio.wait([receiving])
