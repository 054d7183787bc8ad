"""An event loop in a thread of its own, so that a fault goes on while the test's own loop is busy or blocked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")

CALL_SECONDS = 60.0  # everything asked of such a loop is quick; longer means it is stuck


class LoopThread:
    """Base of the proxies: `with` starts and stops them, `_run` does something inside their loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._run(self._close())
            self._run(_cancel_the_rest())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _open(self) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        raise NotImplementedError

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, from any thread but the loop's own."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_SECONDS)


async def _cancel_the_rest() -> None:
    """End every task but this one, so that none is destroyed while pending."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
