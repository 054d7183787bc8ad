"""KubeRay's objects under keys of ours: what each reads as."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass

from raykeeper.history.kuberay.eventfiles import SegmentMaker
from raykeeper.history.kuberay.polledpaths import KNOWN_PATHS
from raykeeper.history.kuberay.rawpacks import RawPack, raw_frame
from raykeeper.layout.polled import encode_polled, polled_body
from raykeeper.layout.records import PolledAnswer
from raykeeper.storage.store import ObjectStat, ObjectStore

_PIECE_BYTES = 4 << 20  # of an event file read at a time


@dataclass(frozen=True)
class Adapted(ABC):
    """One object as our layout has it."""

    stat: ObjectStat
    """With our key. The size of events is an estimate of what they have as a segment."""

    @abstractmethod
    async def read(self, store: ObjectStore) -> bytes:
        """All of it. Raises ObjectMissing when KubeRay's object is gone."""

    async def read_range(self, store: ObjectStore, offset: int, length: int) -> bytes:
        return (await self.read(store))[offset : offset + length]


@dataclass(frozen=True)
class AdaptedRecord(Adapted):
    """A small record that follows from what KubeRay's listing shows."""

    data: bytes

    async def read(self, store: ObjectStore) -> bytes:  # noqa: ARG002 - nothing has to be read
        return self.data


@dataclass(frozen=True)
class AdaptedAnswer(Adapted):
    """An answer of the head's dashboard."""

    raw: ObjectStat
    path: str

    async def read(self, store: ObjectStore) -> bytes:
        answer = PolledAnswer(
            path=self.path,
            polled_at=self.raw.modified,
            status=200,
            body=polled_body(await store.get(self.raw.key)),
            is_path_guessed=self.path not in KNOWN_PATHS,
        )
        return encode_polled(answer)


@dataclass(frozen=True)
class AdaptedEvents(Adapted):
    """An event file."""

    raw: ObjectStat
    is_gzip: bool

    async def read(self, store: ObjectStore) -> bytes:
        return (await self.convert(store))[0]

    async def convert(self, store: ObjectStore) -> tuple[bytes, str]:
        """The segment, and why the file could not be read to its end (empty if it could)."""
        maker = SegmentMaker(is_gzip=self.is_gzip)
        for offset in range(0, self.raw.size, _PIECE_BYTES):
            piece = await store.read_range(self.raw.key, offset, _PIECE_BYTES)
            await asyncio.to_thread(maker.feed, piece)
        return await asyncio.to_thread(maker.finish), maker.damage


@dataclass(frozen=True)
class AdaptedLog(Adapted):
    """A whole log file as a pack."""

    raw: ObjectStat
    pack: RawPack

    async def read(self, store: ObjectStore) -> bytes:
        return await self.read_range(store, 0, self.pack.size)

    async def read_range(self, store: ObjectStore, offset: int, length: int) -> bytes:
        """Assembled of the file's own bytes; what only touches the index reads none of them."""
        end, parts = min(offset + length, self.pack.size), list[bytes]()
        for frame in self.pack.touched(offset, end):
            text = await store.read_range(self.raw.key, frame.offset, frame.length) if frame.length else b""
            parts.append(raw_frame(text)[max(0, offset - frame.position) : end - frame.position])
        behind = self.pack.frames_end
        if end > behind:
            ending = await asyncio.to_thread(self.pack.ending)
            parts.append(ending[max(0, offset - behind) : end - behind])
        return b"".join(parts)
