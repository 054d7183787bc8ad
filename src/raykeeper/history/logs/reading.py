"""Bytes of one log file out of its packs, piece by piece: memory for a few frames, whatever the file's size.

What is missing is said in the text, where it is missing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from raykeeper.layout.logs import Hole, Slice, StoredLog, plan_read
from raykeeper.layout.packs import DamagedPack, Frame, read_frame
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_AHEAD_FRAMES, _AHEAD_BYTES = 8, 8 << 20  # fetched before they are asked for: hides the store's latency
_CACHE_BYTES = 32 << 20  # frames read a moment ago: a tail is looked for backwards, then sent forwards
_IN_THREAD_BYTES = 256 * 1024  # decompressing more would be felt by other requests


class LogReader:
    """Reads what a plan says, in order."""

    def __init__(self, store: ObjectStore, cache_bytes: int = _CACHE_BYTES) -> None:
        self._store = store
        self._cache: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._cached = 0
        self._cache_bytes = cache_bytes

    async def stream(self, stored: StoredLog, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [start, end) as far as they exist; notes stand for what is missing."""
        async for piece, data in self._pieces(plan_read(stored, start, end)):
            yield data if isinstance(data, bytes) else hole_note(piece, data)

    async def exact(self, plan: Sequence[Slice | Hole]) -> AsyncIterator[bytes | Hole]:
        """Every byte of the plan: as itself, or as a hole that says why it is missing."""
        async for piece, data in self._pieces(plan):
            yield data if isinstance(data, bytes) else Hole(piece.start, piece.end, data)

    async def tail_start(self, stored: StoredLog, start: int, end: int, lines: int) -> int:
        """Where the last `lines` lines of [start, end) begin; a last line without an end counts."""
        if lines <= 0:
            return end
        left, is_last = lines, True
        async for piece, data in self._pieces(reversed(plan_read(stored, start, end))):
            text = data if isinstance(data, bytes) else b""
            # The newline at the very end closes the last line and separates nothing.
            newlines = _newlines_from_end(text[:-1] if is_last and text.endswith(b"\n") else text)
            is_last = False
            for at in newlines:
                left -= 1
                if left == 0:
                    return piece.start + at + 1
        return start

    async def _pieces(self, plan: Iterable[Slice | Hole]) -> AsyncIterator[tuple[Slice | Hole, bytes | str]]:
        """Each piece with its bytes, or with the reason why there are none; the next ones are on their way."""
        waiting: deque[tuple[Slice | Hole, asyncio.Task[bytes | str]]] = deque()
        ahead, pieces = 0, iter(plan)
        try:
            while True:
                while len(waiting) < _AHEAD_FRAMES and ahead < _AHEAD_BYTES and (piece := next(pieces, None)):
                    waiting.append((piece, asyncio.create_task(self._fetch(piece))))
                    ahead += _weight(piece)
                if not waiting:
                    return
                piece, task = waiting.popleft()
                yield piece, await task
                ahead -= _weight(piece)
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    async def _fetch(self, piece: Slice | Hole) -> bytes | str:
        if isinstance(piece, Hole):
            return piece.reason or "never stored"
        try:
            text = await self._frame(piece.pack, piece.frame)
        except (DamagedPack, ObjectMissing) as exc:
            return str(exc)
        return text[piece.start - piece.frame.offset : piece.end - piece.frame.offset]

    async def _frame(self, pack: str, frame: Frame) -> bytes:
        key = (pack, frame.position)
        if (text := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return text
        packed = await self._store.read_range(pack, frame.position, frame.size)
        if frame.length > _IN_THREAD_BYTES:
            text = await asyncio.to_thread(read_frame, frame, packed)
        else:
            text = read_frame(frame, packed)
        self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int], text: bytes) -> None:
        self._cached += len(text) - len(self._cache.pop(key, b""))
        self._cache[key] = text
        while self._cached > self._cache_bytes:
            self._cached -= len(self._cache.popitem(last=False)[1])


def hole_note(hole: Slice | Hole, reason: str) -> bytes:
    """What a reader sees instead of bytes that are not there."""
    return f"\n[raykeeper: {hole.end - hole.start} bytes of this log are missing here: {reason}]\n".encode()


def _newlines_from_end(text: bytes) -> Iterator[int]:
    at = text.rfind(b"\n")
    while at >= 0:
        yield at
        at = text.rfind(b"\n", 0, at)


def _weight(piece: Slice | Hole) -> int:
    return piece.frame.length if isinstance(piece, Slice) else 0
