"""What collector and history may ask of an object store, whichever it is.

There is no compare-and-set: Alibaba's store has none. Keys are unique and immutable, created once, or have one writer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from raykeeper.clock import Clock
from raykeeper.storage.clockoffset import ClockOffset, clock_offset
from raykeeper.storage.errors import ObjectMissing

OBJECT_LIMIT_BYTES = 64 << 20
"""Of an object that is read whole, where the reader knows no closer bound: whoever may write into a bucket decides how
large an object is."""

Names = list[str]  # inside the class `list` is the method


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """What a store knows about an object without opening it."""

    key: str
    size: int
    modified: datetime
    """By the store's clock."""


@dataclass(frozen=True, slots=True)
class ObjectTail:
    """The last bytes of an object, and how large all of it is."""

    size: int
    data: bytes


class ObjectStore(ABC):
    """Objects under one prefix of one bucket; keys are relative to that prefix.

    Guarantees: an object is there whole or not at all. Raises `ObjectMissing`, `ObjectTooLarge`, `StoreRefused` and
    `StoreUnavailable`.
    """

    @abstractmethod
    def describe(self) -> str:
        """Backend, bucket and prefix, for logs and errors; never a secret."""

    @abstractmethod
    async def put(self, key: str, data: bytes) -> None:
        """Write an object, over the one that is there."""

    @abstractmethod
    async def create(self, key: str, data: bytes) -> bool:
        """Whether this call wrote the object; False when there was one. Of several callers exactly one hears True.

        Callers that write the same bytes may both hear True, after an answer was lost.
        """

    @abstractmethod
    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        """The whole object. Raises ObjectTooLarge for a larger one, whatever a listing said of it before."""

    @abstractmethod
    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        """Bytes `offset` to `offset + length`, or fewer where the object ends before."""

    @abstractmethod
    async def stat(self, key: str) -> ObjectStat:
        """Size and time of an object."""

    @abstractmethod
    def list(self, prefix: str, *, after: str = "") -> AsyncIterator[ObjectStat]:
        """All objects whose key starts with `prefix` and sorts behind `after`, in the order of their keys' bytes.

        Assumes that no folder under `prefix` is called like another plus one of the characters that sort before a
        slash, if the order matters: SeaweedFS lists folder by folder (`a/x` before `a-b/x`).
        """

    @abstractmethod
    async def list_folders(self, prefix: str) -> Names:
        """Names of the folders directly under `prefix` (empty, or ending in a slash), sorted, without slashes."""

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Remove an object; nothing happens when there is none."""

    @abstractmethod
    async def put_file(self, key: str, path: Path) -> None:
        """Write a file of any size, with bounded memory."""

    @abstractmethod
    async def get_file(self, key: str, path: Path, limit_bytes: int | None = None) -> None:
        """Read an object of any size into a file, with bounded memory. Assumes that nobody overwrites it meanwhile.

        Raises ObjectTooLarge for one of more than `limit_bytes`, before anything of it is read.
        """

    async def find(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes | None:
        """The whole object, or None when there is none. Raises ObjectTooLarge."""
        try:
            return await self.get(key, limit_bytes)
        except ObjectMissing:
            return None

    async def is_computed(self, key: str) -> bool:  # noqa: ARG002 - asked of stores that show other layouts
        """Whether the object is worked out from others whenever it is read, so that copies of it are worth nothing."""
        return False

    async def tail(self, key: str, length: int) -> ObjectTail:
        """The last `length` bytes, or all of a shorter object."""
        size = (await self.stat(key)).size
        start = max(0, size - length)
        return ObjectTail(size, await self.read_range(key, start, size - start) if size else b"")

    async def put_and_compare_clocks(self, key: str, data: bytes, clock: Clock) -> ClockOffset:
        """Write an object and learn from its time how far the store's clock is from ours."""
        sent = clock.now()
        await self.put(key, data)
        answered = clock.now()
        return clock_offset((await self.stat(key)).modified, sent, answered)


def checked_key(key: str) -> str:
    """The key itself, if every backend can hold it; a key that none of our layouts makes is our own bug."""
    if not key or any(part in ("", ".", "..") for part in key.split("/")) or "\\" in key or not key.isprintable():
        raise ValueError(f"{key!r} cannot be the key of an object")
    return key


def checked_prefix(prefix: str) -> str:
    """The prefix itself, if keys may start with it."""
    if prefix:
        checked_key(prefix.removesuffix("/"))
    return prefix
