"""A bucket in memory that can be away, for tests of what is written and when."""

from __future__ import annotations

import asyncio

from raykeeper.layout.keys import parse_polled_key
from raykeeper.layout.polled import decode_polled
from raykeeper.layout.records import PolledAnswer, R, decode_record


class MemoryBucket:
    """Keeps objects; while it is away, callers wait as they would for the real one."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.puts: list[str] = []
        self._is_there = asyncio.Event()
        self._is_there.set()

    def go_away(self) -> None:
        self._is_there.clear()

    def come_back(self) -> None:
        self._is_there.set()

    async def put(self, key: str, data: bytes) -> None:
        await self._is_there.wait()
        self.objects[key] = data
        self.puts.append(key)

    async def create(self, key: str, data: bytes) -> bool:
        await self._is_there.wait()
        return self.objects.setdefault(key, data) is data

    async def find(self, key: str) -> bytes | None:
        await self._is_there.wait()
        return self.objects.get(key)

    def record(self, key: str, kind: type[R]) -> R:
        return decode_record(self.objects[key], kind)

    def polled(self, name: str, session: str | None = None) -> list[PolledAnswer]:
        """Every stored answer of that name, in the order of their times."""
        found = []
        for key in sorted(self.objects):
            facts = parse_polled_key(key)
            if facts and facts.name == name and session in (None, facts.session.session):
                found.append(decode_polled(self.objects[key]))
        return found
