"""Whether a registry refuses an image, and since when."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from raykeeper.api.meta import JSON

PULLS: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})
PATIENCE: Final = timedelta(minutes=5)
"""So long a registry may refuse an image before that counts as its last word."""
LONGEST_MESSAGE: Final = 4096

ContainerKey = tuple[str, str]
"""Uid of a pod, name of a container."""

# What the user chose may contain any word and number: an image called `denied`, a digest with 404 in it.
_NAMES: Final = re.compile(r"\"[^\"]*\"|(?<=\bmanifest )\S+ in |(?<=\bmanifest for )\S+")
_REFUSAL: Final = re.compile(
    r"\b401 unauthorized|\b403 forbidden|\b404 not found|\bstatus(?: ?code)?[: ]+40[134]\b|\bunauthorized\b"
    r"|\baccess (?:to the resource is )?denied|\bauthorization failed|\bauthentication required"
    r"|\bno basic auth credentials|\b(?:manifest|name|repository name) unknown|\brepository does not exist"
    r"|\b(?:resolve|manifest|content at)\b.*\bnot found",
    re.IGNORECASE | re.DOTALL,
)
_NO_CAUSE: Final = "Back-off pulling image"
"""All that kubelets before 1.32 say between two tries."""


class Answer(Enum):
    """What a waiting container says about its registry."""

    REFUSED = auto()
    OTHER = auto()
    """The image is not refused: it is there, on its way, or something else is wrong."""
    NOTHING_NEW = auto()


def registry_answer(container: JSON) -> Answer:
    """By the state of one container."""
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason") or "", (waiting.get("message") or "")[:LONGEST_MESSAGE]
    if reason in USUAL:
        return Answer.NOTHING_NEW
    if reason not in PULLS:
        return Answer.OTHER
    said = _without_names(message, container.get("image") or "")
    if said in ("", _NO_CAUSE):
        return Answer.NOTHING_NEW
    return Answer.REFUSED if _REFUSAL.search(said) else Answer.OTHER


def _without_names(message: str, image: str) -> str:
    """The message without the image, and without addresses and references of any other spelling."""
    text = _NAMES.sub(" ", message.replace(image, " ") if image else message)
    return " ".join(word for word in text.split() if "/" not in word and "@" not in word)


class RefusedPulls:
    """Since when registries refuse images. Kept in memory, for no field of a pod says it: an operator that is started
    anew counts from its first look.
    """

    def __init__(self) -> None:
        self._since: dict[Hashable, dict[ContainerKey, datetime]] = {}

    def note(self, owner: Hashable, pods: Iterable[JSON], now: datetime) -> frozenset[ContainerKey]:
        """These are the owner's pods now; returns the containers whose image has been refused for long enough."""
        known = self._since.pop(owner, {})
        since = {key: known.get(key, now) for key, answer in _answers(pods) if _is_refused(answer, key in known)}
        if since:
            self._since[owner] = since
        return frozenset(key for key, moment in since.items() if now >= moment + PATIENCE)

    def forget(self, owner: Hashable) -> None:
        self._since.pop(owner, None)


def _is_refused(answer: Answer, was_refused: bool) -> bool:
    return answer is Answer.REFUSED or (answer is Answer.NOTHING_NEW and was_refused)


def _answers(pods: Iterable[JSON]) -> Iterator[tuple[ContainerKey, Answer]]:
    for pod in pods:
        status = pod.get("status") or {}
        for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            yield (pod["metadata"].get("uid", ""), container["name"]), registry_answer(container)
