"""What can be asked of a Ray head, whichever way leads to it."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.ray.dashboard import Answer
from raykeeper.ray.errors import HeadRefused

TEXT_IN_MESSAGES = 2000
"""Characters of a head's own words that we pass on; tracebacks of Ray are longer."""


class Head(Protocol):
    """Raises Unavailable for what passes, RayRefused for want of a token, OversizedAnswer, and nothing else."""

    service: str
    """What errors call it."""

    async def get(self, path: str) -> Answer:
        """The answer to a GET, whatever its status."""

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        """The answer to a request that changes something, whatever its status."""


T = TypeVar("T")


def decode_answer(head: Head, about: str, answer: Answer, kind: type[T]) -> T:
    """What an answer says. Raises `Unavailable` for what is none of Ray's: a head belongs to its users."""
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Unavailable(head.service, f"what it says about {about} cannot be read ({exc})") from exc


def raise_for(head: Head, about: str, answer: Answer) -> None:
    """Return if the answer is good. Raises `Unavailable` for an error of the server's, `HeadRefused` for others."""
    if answer.status < 300:
        return
    text = answer.body[:TEXT_IN_MESSAGES].decode(errors="replace").strip()
    if answer.status >= 500:
        raise Unavailable(head.service, f"{about} answered {answer.status}: {text}")
    raise HeadRefused(f"{head.service}, {about}", answer.status, text)
