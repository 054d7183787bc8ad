"""Waiting for a condition with a deadline, so that nothing sleeps and hopes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from bed.errors import BedError

T = TypeVar("T")

SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.5
PATIENCE_SECONDS = 120.0
"""For what usually takes a second. A deadline is there to end a test that hangs, it says nothing about pace: the
machine may be slow, and do other things too."""
BUSY_FACTOR = 5.0
"""What a bound on time is multiplied by, where a test must have one: so much longer may anything take beside others."""


def wait_until(what: str, condition: Callable[[], T], timeout: float = PATIENCE_SECONDS) -> T:
    """The first truthy answer of `condition`; `BedError` naming `what` when there was none in `timeout` seconds."""
    began = time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - began
        if waited >= timeout:
            raise BedError(f"{what}: still not so after {timeout:g} s (last answer: {answer!r})")
        time.sleep(pause_after(waited))
    return answer


def pause_after(waited_seconds: float) -> float:
    """Seconds until a server is asked again. What lasts is asked about less often: a wait grows by a twentieth, and
    hundreds who wait at once do not keep the server from what they wait for.
    """
    return min(max(SHORTEST_PAUSE_SECONDS, waited_seconds / 20), LONGEST_PAUSE_SECONDS)
