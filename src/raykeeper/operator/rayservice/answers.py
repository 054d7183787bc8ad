"""What Serve and its proxy beside the head last said, as facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from raykeeper.api.rayservice import AppStatus, ServeDeploymentStatus
from raykeeper.operator.rayhead.poller import Reading
from raykeeper.ray.serve import ApplicationStatus

MOST_APPLICATIONS: Final = 100
MOST_DEPLOYMENTS: Final = 1000
"""In all. A status with more would not fit into an object of Kubernetes."""
LONGEST_MESSAGE: Final = 500
PROXY_PATIENCE: Final = timedelta(seconds=5)
"""So long a proxy may be silent before requests are kept from it: one lost answer is no reason."""


def applications(answer: Mapping[str, ApplicationStatus]) -> dict[str, AppStatus]:
    """Serve's answer in the words of the status."""
    found: dict[str, AppStatus] = {}
    left = MOST_DEPLOYMENTS
    for name, application in list(answer.items())[:MOST_APPLICATIONS]:
        deployments = list(application.deployments.items())[:left]
        left -= len(deployments)
        found[name] = AppStatus(
            application.status,
            application.message[:LONGEST_MESSAGE],
            {one: ServeDeploymentStatus(state.status, state.message[:LONGEST_MESSAGE]) for one, state in deployments},
        )
    return found


def proxy_health(reading: Reading[bool], now: datetime) -> tuple[bool | None, datetime | None]:
    """Whether the proxy takes requests, None while that is open; and when it will not be open any more."""
    if reading.failing_since is None:
        return reading.answer if reading.has_answer else None, None
    dead_at = reading.failing_since + PROXY_PATIENCE
    return (False, None) if now >= dead_at else (None, dead_at)
