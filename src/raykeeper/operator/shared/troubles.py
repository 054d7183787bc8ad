"""Why pods do not start, in the kubelet's and the scheduler's own words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from raykeeper.api.containers import WAIT_FOR_TLS_IP_SAN, WAIT_GCS_READY
from raykeeper.api.meta import JSON
from raykeeper.operator.shared.pulls import USUAL, ContainerKey

NEVER_HEALS: Final = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
MAX_MESSAGE_LENGTH: Final = 1000
NOTHING_TO_RUN: Final = (126, 127)
"""Exit codes of a shell that may not run a command, or finds none: there is no Ray in the image."""
CANNOT_RUN: Final = ("StartError", "ContainerCannotRun")
"""The container runtime finds no program, not even a shell."""
OURS: Final = (WAIT_GCS_READY, WAIT_FOR_TLS_IP_SAN)
"""Init containers that wait for somebody else, who may come."""


@dataclass(frozen=True)
class Trouble:
    """What keeps something from going on."""

    reason: str
    message: str
    is_hopeless: bool = False
    """It does not heal however long one waits."""


def pods_trouble(pods: Iterable[JSON], refused: Collection[ContainerKey] = ()) -> Trouble | None:
    """The worst of what keeps pods from running; None where nothing does.

    `refused`: the containers whose image a registry has refused for so long that it will not be had.
    """
    found = [trouble for pod in pods for trouble in _of_pod(pod, refused)]
    return min(found, key=lambda trouble: not trouble.is_hopeless, default=None)


def _of_pod(pod: JSON, refused: Collection[ContainerKey]) -> Iterator[Trouble]:
    name, uid, status = pod["metadata"].get("name", ""), pod["metadata"].get("uid", ""), pod.get("status") or {}
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield Trouble(condition.get("reason") or "Unschedulable", _said(f"pod {name}", condition.get("message")))
    is_over = status.get("phase") == "Failed"  # nothing in it is started again
    for kind, words in (("initContainerStatuses", "init container"), ("containerStatuses", "container")):
        for container in status.get(kind) or []:
            where, state = f"pod {name}: {words} {container['name']}", container.get("state") or {}
            if waiting := state.get("waiting"):
                yield from _of_waiting(where, waiting, _last_end(container), (uid, container["name"]) in refused)
            elif (end := state.get("terminated")) and end.get("exitCode"):
                is_users = words == "init container" and container["name"] not in OURS
                yield Trouble(
                    end.get("reason") or "Error", _said(where, _ended(end)), _is_futile(end, is_over and is_users)
                )


def _of_waiting(where: str, waiting: JSON, last: JSON, is_refused: bool) -> Iterator[Trouble]:
    reason, message = waiting.get("reason") or "", waiting.get("message") or ""
    if reason in ("", *USUAL):
        return
    said = "; ".join(filter(None, (message, _ended(last))))
    yield Trouble(reason, _said(where, said), reason in NEVER_HEALS or is_refused or _is_futile(last, False))


def _last_end(container: JSON) -> JSON:
    return (container.get("lastState") or {}).get("terminated") or {}


def _ended(end: JSON) -> str:
    """How a container ended, in words; empty where it did not."""
    if "exitCode" not in end:
        return ""
    told = ": ".join(filter(None, (end.get("reason"), end.get("message"))))
    return f"it ended with exit code {end['exitCode']}{f' ({told})' if told else ''}"


def _is_futile(end: JSON, is_last: bool) -> bool:
    """Whether it would end the same way again: there is nothing to run, or it was the only try."""
    return is_last or end.get("exitCode") in NOTHING_TO_RUN or end.get("reason") in CANNOT_RUN


def _said(where: str, message: str | None) -> str:
    return f"{where}: {message or 'no reason was given'}"[:MAX_MESSAGE_LENGTH]
