"""Which line of a log begins where: ends of lines are counted once, a mark every megabyte is remembered.

A file of 2 GB takes seconds to count. Nobody waits for that: it is counted in the background, as far as somebody asked.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, field

from raykeeper.history.bounded import Bounded
from raykeeper.history.logs.reader import LogReader, planned
from raykeeper.layout.keys import SessionId
from raykeeper.layout.logs import Hole, StoredLog
from raykeeper.storage.store import ObjectStore

STEP_BYTES = 1 << 20
"""Between two marks; more in files so long that they would have too many."""
MARKS_OF_FILE = 4096
_MARKS_LIMIT = 400_000  # of all files: some 30 MB of memory
_COUNTED_AT_ONCE = 2  # files; each has some megabytes on their way


@dataclass
class LineMarks:
    """How many lines end before some offsets of one file."""

    step: int = STEP_BYTES
    offsets: list[int] = field(default_factory=lambda: [0])
    ends: list[int] = field(default_factory=lambda: [0])
    at: int = 0
    """All before this offset is counted."""
    number: int = 0
    """Of lines that end before it."""

    def add(self, length: int, ends: int) -> None:
        self.at += length
        self.number += ends
        if self.at - self.offsets[-1] >= self.step:
            self.offsets.append(self.at)
            self.ends.append(self.number)
        if len(self.offsets) > MARKS_OF_FILE:  # the file has grown since
            del self.offsets[1::2], self.ends[1::2]
            self.step *= 2

    def before_offset(self, offset: int) -> tuple[int, int]:
        """The last mark at or before an offset: where, and how many lines end before it."""
        place = bisect_right(self.offsets, offset) - 1
        return self.offsets[place], self.ends[place]

    def before_line(self, line: int) -> tuple[int, int]:
        """The last mark before a line, from 1, or at its beginning."""
        place = max(0, bisect_left(self.ends, line - 1) - 1)
        return self.offsets[place], self.ends[place]


class LineCounter:
    """The marks of files that somebody looks at. All of it can be forgotten and counted again."""

    def __init__(self, store: ObjectStore) -> None:
        self._reader = LogReader(store, cache_bytes=0)  # what is read once for its lines keeps nothing else out
        self._marks: Bounded[Hashable, LineMarks] = Bounded(_MARKS_LIMIT)
        self._counting: dict[Hashable, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_COUNTED_AT_ONCE)

    async def line_at(self, session: SessionId, stored: StoredLog, offset: int, patience: float) -> int | None:
        """Number of the line that begins there, from 1; None if it is not counted by then."""
        marks = self._known(session, stored)
        if not await self._reaches(session, stored, marks, offset, patience):
            return None
        at, ends = marks.before_offset(offset)
        async for piece in self._reader.exact(await planned(stored, at, offset)):
            ends += _measure(piece)[1]
        return ends + 1

    async def offset_of(self, session: SessionId, stored: StoredLog, line: int, patience: float) -> int | None:
        """Where a line begins; the end of a file with fewer lines; None if it is not counted by then."""
        marks = self._known(session, stored)
        if not await self._reaches(session, stored, marks, stored.size, patience, line):
            return None
        at, ends = marks.before_line(line)
        async for piece in self._reader.exact(await planned(stored, at, stored.size)):
            length, found = _measure(piece)
            if isinstance(piece, bytes) and ends + found >= line - 1:
                return at + _behind_end(piece, line - 1 - ends)
            at, ends = at + length, ends + found
        return stored.size

    async def close(self) -> None:
        """Stop counting."""
        tasks = list(self._counting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _known(self, session: SessionId, stored: StoredLog) -> LineMarks:
        """A file that is rewritten in place is another one each time it was read."""
        key = _key(session, stored)
        marks = self._marks.get(key)
        if marks is None:
            marks = LineMarks(max(STEP_BYTES, stored.size // MARKS_OF_FILE))
            self._marks.put(key, marks, MARKS_OF_FILE // 8 + stored.size // marks.step)
        return marks

    async def _reaches(
        self, session: SessionId, stored: StoredLog, marks: LineMarks, offset: int, patience: float, line: int = 0
    ) -> bool:
        """Whether all is counted up to an offset or a line, after so many seconds at most."""
        key, deadline = _key(session, stored), asyncio.get_running_loop().time() + patience
        while not _is_enough(marks, offset, line):
            task = self._counting.get(key)
            if task is None:
                task = self._counting[key] = asyncio.create_task(self._count(stored, marks, offset, line))
                task.add_done_callback(lambda _: self._counting.pop(key, None))
            left = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({task}, timeout=max(0.0, left))
            if not done:
                return False  # it goes on, for whoever asks next
            task.result()
        return True

    async def _count(self, stored: StoredLog, marks: LineMarks, until: int, line: int) -> None:
        async with self._slots:
            async for piece in self._reader.exact(await planned(stored, marks.at, until)):
                marks.add(*_measure(piece))
                if _is_enough(marks, until, line):
                    return


def _key(session: SessionId, stored: StoredLog) -> Hashable:
    return session, stored.generation, stored.last_read_ns if stored.is_whole else 0


def _is_enough(marks: LineMarks, offset: int, line: int) -> bool:
    return marks.at >= offset or 0 < line <= marks.number + 1


def _measure(piece: bytes | Hole) -> tuple[int, int]:
    """How long it is, and how many lines end in it."""
    return (len(piece), piece.count(b"\n")) if isinstance(piece, bytes) else (piece.end - piece.start, 0)


def _behind_end(text: bytes, ends: int) -> int:
    """Where the line begins behind so many ends of lines."""
    at = 0
    for _ in range(ends):
        at = text.index(b"\n", at) + 1
    return at
