"""Waiting for a condition with a deadline, so that nothing sleeps and hopes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from bed.errors import BedError

T = TypeVar("T")

POLL_SECONDS = 0.05


def wait_until(what: str, condition: Callable[[], T], timeout: float = 30.0) -> T:
    """The first truthy answer of `condition`; `BedError` naming `what` when there was none in `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            raise BedError(f"{what}: still not so after {timeout:g} s (last answer: {answer!r})")
        time.sleep(POLL_SECONDS)
    return answer
