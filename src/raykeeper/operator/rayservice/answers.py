"""What Serve and its proxy beside the head last said, as facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from raykeeper.api.rayservice import AppStatus, ServeDeploymentStatus
from raykeeper.operator.rayhead.poller import Reading
from raykeeper.ray.serve import ApplicationStatus

MOST_APPLICATIONS: Final = 100
MOST_DEPLOYMENTS: Final = 1000
"""In all."""
LONGEST_MESSAGE: Final = 500
MOST_BYTES: Final = 300_000
"""Of all names and messages as JSON: what is said about two clusters must fit into one object of Kubernetes."""
PROXY_PATIENCE: Final = timedelta(seconds=5)
"""So long a proxy may be silent before requests are kept from it: one lost answer is no reason."""


def applications(answer: Mapping[str, ApplicationStatus]) -> dict[str, AppStatus]:
    """Serve's answer in the words of the status."""
    room, left = _Room(), MOST_DEPLOYMENTS
    found: dict[str, AppStatus] = {}
    for name, application in list(answer.items())[:MOST_APPLICATIONS]:
        told = AppStatus(application.status[:LONGEST_MESSAGE], application.message[:LONGEST_MESSAGE])
        if not room.has_room(name, told):
            continue
        deployments: dict[str, ServeDeploymentStatus] = {}
        for one, state in list(application.deployments.items())[:left]:
            about = ServeDeploymentStatus(state.status[:LONGEST_MESSAGE], state.message[:LONGEST_MESSAGE])
            if room.has_room(one, about):
                deployments[one] = about
        left -= len(deployments)
        found[name] = msgspec.structs.replace(told, serve_deployment_statuses=deployments)
    return found


class _Room:
    """What is left of the bytes that a status has for Serve's words."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def has_room(self, name: str, about: AppStatus | ServeDeploymentStatus) -> bool:
        """Whether this fits in, too; then it has its place."""
        size = len(msgspec.json.encode({name: about}))
        if size > self._left:
            return False
        self._left -= size
        return True


def proxy_health(reading: Reading[bool], now: datetime) -> tuple[bool | None, datetime | None]:
    """Whether the proxy takes requests, None while that is open; and when it will not be open any more."""
    if reading.failing_since is None:
        return reading.answer if reading.has_answer else None, None
    dead_at = reading.failing_since + PROXY_PATIENCE
    return (False, None) if now >= dead_at else (None, dead_at)
