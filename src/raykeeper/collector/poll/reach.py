"""Whether the dashboard is reachable; logged once per change, not per attempt."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError
from raykeeper.logs import Log
from raykeeper.ray.errors import RayRefused

RETRY_SECONDS = 5.0  # a refused connection costs nothing, and Ray's head is up within seconds of its start
REFUSED_RETRY_SECONDS = 60.0  # a token may be mounted late or renewed; until then the head is left alone

log = Log("raykeeper.collector.poll")


class Reach:
    """What was last said about the dashboard, and how long to leave it alone."""

    def __init__(self) -> None:
        self._said = ""

    def found(self) -> None:
        """It answered."""
        if self._said:
            log.info("dashboard answers")
            self._said = ""

    def lost(self, error: RaykeeperError) -> float:
        """It did not answer; returns the seconds until the next attempt."""
        self._say("lost", error)
        return RETRY_SECONDS

    def refused(self, error: RayRefused) -> float:
        """It wants another token; returns the seconds until the next attempt."""
        self._say("refused", error)
        return REFUSED_RETRY_SECONDS

    def _say(self, what: str, error: Exception) -> None:
        if self._said == what:
            return
        self._said = what
        if what == "refused":
            log.warning("dashboard refuses us: it is asked again every minute", cause=str(error))
        else:
            log.info("dashboard does not answer; waiting for it", cause=str(error))
