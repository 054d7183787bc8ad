"""Steps that take long say so: their name when they start, a sign of life while they run, the seconds at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SIGN_OF_LIFE_SECONDS = 20.0  # often enough for a CI log that is watched for silence


def say(line: str) -> None:
    """Write one line where a person looks, never where a command's result goes."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Announce `name`, repeat it while the body runs, and tell how long it took (also when it failed)."""
    started = time.monotonic()
    finished = threading.Event()

    def seconds() -> str:
        return f"{time.monotonic() - started:.1f} s"

    def remind() -> None:
        while not finished.wait(SIGN_OF_LIFE_SECONDS):
            say(f"bed: {name} ... {seconds()}")

    say(f"bed: {name}")
    reminder = threading.Thread(target=remind, name=f"progress of {name}", daemon=True)
    reminder.start()
    outcome = "failed after"
    try:
        yield
        outcome = "done in"
    finally:
        finished.set()
        reminder.join()
        say(f"bed: {name}: {outcome} {seconds()}")
