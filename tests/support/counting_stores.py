"""Local stores that know what they were asked for, and some that cannot take anything new."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.errors import StoreRefused, StoreUnavailable
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.store import OBJECT_LIMIT_BYTES


@dataclass
class Asked:
    """How often a store was asked for what."""

    opened: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)


class CountingStore(LocalStore):
    """A store that knows what it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(StoreSettings(LOCAL, str(folder)))
        self.asked = Asked()

    async def get(self, key: str, limit_bytes: int = OBJECT_LIMIT_BYTES) -> bytes:
        self.asked.opened.append(key)
        return await super().get(key, limit_bytes)

    async def read_range(self, key: str, offset: int, length: int) -> bytes:
        self.asked.ranges.append(key)
        return await super().read_range(key, offset, length)


class ReadOnlyStore(CountingStore):
    async def create(self, key: str, data: bytes) -> bool:
        raise StoreRefused("local", key, "forbidden", "ask somebody")


class FullStore(CountingStore):
    async def create(self, key: str, data: bytes) -> bool:
        raise StoreUnavailable("local", key, "no space left on device")
