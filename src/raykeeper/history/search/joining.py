"""Lines that are cut between two runs: what a newer run begins with is kept until the older one is searched.

Keeping it spares a read and nothing else: what is not kept is read again, so a search may go on anywhere.
"""

from __future__ import annotations

from collections import OrderedDict

from raykeeper.history.logs.reading import LogReader
from raykeeper.history.search.matching import LINE_BYTES, Matcher, Span
from raykeeper.history.search.scanning import Run
from raykeeper.layout.logs import StoredLog, plan_read

_KEPT_BYTES = 16 << 20  # beginnings of files' runs; a node has some hundred files, and lines are short


class Joints:
    """Borders of one node's runs, newest first."""

    def __init__(self, reader: LogReader, matcher: Matcher) -> None:
        self._reader = reader
        self._matcher = matcher
        self._kept: OrderedDict[tuple[str, int], bytes | None] = OrderedDict()
        self._kept_bytes = 0

    async def hits(self, run: Run) -> list[Span]:
        """All hits that begin in the run, by their offsets in the file."""
        rest = await self._rest_behind(run)
        if run.joins_before and not run.has_line_end:
            return self._pass_on(run, run.text + (rest or b""))
        if run.joins_before:
            self._keep(run, run.head)
        elif run.goes_before:
            self._keep(run, None)
        return [*run.hits, *self._last_line(run, rest)]

    def _pass_on(self, run: Run, text: bytes) -> list[Span]:
        """A piece from the middle of a line goes to where the line begins, unless it becomes too long for one."""
        if len(text) <= LINE_BYTES:
            self._keep(run, text)
            return []
        self._keep(run, None)
        return self._found(run.start, text)

    def _last_line(self, run: Run, rest: bytes | None) -> list[Span]:
        begun = run.text[run.tail_start - run.start :]
        if not run.goes_on or (rest is None and not begun):
            return []
        return self._found(run.tail_start, begun + (rest or b""))

    def _found(self, start: int, line: bytes) -> list[Span]:
        # With its end of line, so that an empty line is one.
        return [(start + begin, start + end) for begin, end in self._matcher.find(line + b"\n")]

    async def _rest_behind(self, run: Run) -> bytes | None:
        """What goes on behind the run up to the end of its last line; None where nothing does."""
        if not run.goes_on or (run.tail_start == run.end and not run.looks_behind):
            return None
        key = (run.stored.generation, run.end)
        if key not in self._kept:
            return await read_rest(self._reader, run.stored, run.end)
        rest = self._kept.pop(key)
        self._kept_bytes -= len(rest or b"")
        return rest

    def _keep(self, run: Run, head: bytes | None) -> None:
        key = (run.stored.generation, run.start)
        self._kept_bytes += len(head or b"") - len(self._kept.pop(key, None) or b"")
        self._kept[key] = head
        while self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1] or b"")


async def read_rest(reader: LogReader, stored: StoredLog, start: int) -> bytes | None:
    """From here to the end of the line or file, or to a gap; None for no bytes, or too many for a line."""
    parts, size = list[bytes](), 0
    async for piece in reader.exact(plan_read(stored, start, start + LINE_BYTES + 1)):
        if not isinstance(piece, bytes):
            break
        line, found, _ = piece.partition(b"\n")
        parts.append(line)
        size += len(line)
        if found:
            return b"".join(parts) if size <= LINE_BYTES else None
    return b"".join(parts) if 0 < size <= LINE_BYTES else None
