"""The collector, with a look every 20 ms at how late its event loop is. The figures since SIGUSR1 are in the file
`LOOP_LAG_FILE`:
the longest and the 99th percentile of all waits, and the longest one that the loop itself spent on the processor.
"""

from __future__ import annotations

import json
import os
import signal
import time
from bisect import insort
from pathlib import Path

import uvloop

from raykeeper.cli.main import main

LOOK_SECONDS, TELL_SECONDS = 0.02, 0.5
_make_loop = uvloop.new_event_loop


class LoopLag:
    """Looks at one loop, from inside."""

    def __init__(self, loop: uvloop.Loop, file: Path) -> None:
        self._loop, self._file = loop, file
        self._told_at = 0.0
        self._begin()
        loop.add_signal_handler(signal.SIGUSR1, self._begin)
        self._ask()

    def _begin(self) -> None:
        self._waits: list[float] = []
        self._longest_work = 0.0

    def _ask(self) -> None:
        self._asked_at, self._worked = time.monotonic(), time.thread_time()
        self._loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        wait = now - self._asked_at - LOOK_SECONDS
        insort(self._waits, wait)
        self._longest_work = max(self._longest_work, min(wait, time.thread_time() - self._worked))
        if now - self._told_at > TELL_SECONDS:
            self._told_at = now
            p99 = self._waits[len(self._waits) * 99 // 100]
            told = {"longest": self._waits[-1], "p99": p99, "longest_work": self._longest_work}
            scratch = self._file.with_suffix(".new")
            scratch.write_text(json.dumps(told))
            scratch.rename(self._file)
        self._ask()


def measured_loop() -> uvloop.Loop:
    loop = _make_loop()
    LoopLag(loop, Path(os.environ["LOOP_LAG_FILE"]))
    return loop


if __name__ == "__main__":
    uvloop.new_event_loop = measured_loop
    main()
