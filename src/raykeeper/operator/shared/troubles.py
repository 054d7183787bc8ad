"""Why pods do not start, in the kubelet's and the scheduler's own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.api.times import parse_time

NEVER_HEALS: Final = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
PULLS: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
REFUSED: Final = ("401", "403", "404", "not found", "unauthorized", "denied")
PATIENCE: Final = timedelta(minutes=5)
"""So long a registry may refuse an image before that counts as its last word."""
MAX_MESSAGE_LENGTH: Final = 1000
USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class Trouble:
    """What keeps something from going on."""

    reason: str
    message: str
    is_hopeless: bool = False
    """It does not heal however long one waits."""


def pods_trouble(pods: Iterable[JSON], now: datetime) -> Trouble | None:
    """The worst of what keeps pods from running; None where nothing does."""
    found = [trouble for pod in pods for trouble in _of_pod(pod, now)]
    return min(found, key=lambda trouble: not trouble.is_hopeless, default=None)


def _of_pod(pod: JSON, now: datetime) -> Iterator[Trouble]:
    name, status = pod["metadata"].get("name", ""), pod.get("status") or {}
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield Trouble(condition.get("reason") or "Unschedulable", _said(f"pod {name}", condition.get("message")))
    created = parse_time(pod["metadata"].get("creationTimestamp")) or now
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or []:
            yield from _of_container(name, container, created, now)


def _of_container(pod: str, container: JSON, created: datetime, now: datetime) -> Iterator[Trouble]:
    state, where = container.get("state") or {}, f"pod {pod}: container {container['name']}"
    waiting = state.get("waiting")
    if waiting and waiting.get("reason") not in (None, *USUAL):
        reason, message = waiting["reason"], waiting.get("message") or ""
        is_refused = reason in PULLS and any(word in message for word in REFUSED) and now >= created + PATIENCE
        last = (container.get("lastState") or {}).get("terminated") or {}
        ended = f"it ended with exit code {last['exitCode']} ({last.get('reason', '')})" if "exitCode" in last else ""
        yield Trouble(reason, _said(where, message or ended), reason in NEVER_HEALS or is_refused)


def _said(where: str, message: str | None) -> str:
    return f"{where}: {message or 'no reason was given'}"[:MAX_MESSAGE_LENGTH]
