"""The slow way through a batch that does not read as it should: keep every good line, count the others.

Lines in the names of Ray's protobuf are rewritten in its usual ones. What is good is decided by the very query that
reads the lines afterwards, on halves of halves, so that the two never disagree.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from raykeeper.history.ingest.jobs import Batch, Gap, Slice
from raykeeper.layout.segments import TornSegment, read_lines
from raykeeper.rayevents.spelling import in_usual_names

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RLE_BLOCK = 1
_OTHER_SPELLING = b'"event_type"'
_LINES_AT_ONCE = 512
"""Lines judged together first; most such pieces are good as a whole."""

Fits = Callable[[Path], bool]


def has_torn_slice(batch: Batch) -> bool:
    """Whether a segment of the batch stops before its end. DuckDB would take that for the end."""
    if not batch.file.stat().st_size:
        return False
    with batch.file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(not is_whole(data, item.offset, item.offset + item.size) for item in batch.slices)


def is_whole(data: bytes | mmap.mmap, start: int, end: int) -> bool:
    """Whether the bytes from `start` to `end` are whole zstd frames, by their headers alone (RFC 8878)."""
    at = start
    while at < end:
        following = _frame_end(data, at, end)
        if following is None or following > end:
            return False
        at = following
    return True


def _frame_end(data: bytes | mmap.mmap, at: int, end: int) -> int | None:
    if end - at < 8:
        return None
    if int.from_bytes(data[at : at + 4], "little") in _SKIPPABLE:
        return at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
    if data[at : at + 4] != _MAGIC:
        return None
    descriptor = data[at + 4]
    is_single, has_checksum = bool(descriptor & 0x20), bool(descriptor & 0x04)
    content_size = (int(is_single), 2, 4, 8)[descriptor >> 6]
    at += 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3] + content_size
    while at + 3 <= end:
        header = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _RLE_BLOCK else size)
        if is_last:
            return at + 4 * has_checksum
    return None


def clean_batch(batch: Batch, target: Path, fits: Fits) -> tuple[Path, list[Gap]]:
    """Write the batch's good lines to `target`, and say what was left out."""
    gaps: list[Gap] = []
    with batch.file.open("rb") as source, target.open("wb") as good:
        for item in batch.slices:
            source.seek(item.offset)
            gaps += _clean_slice(item, source.read(item.size), good.write, _Judge(target.with_suffix(".piece"), fits))
    return target, gaps


class _Judge:
    """Tells good lines from bad ones by trying them in a file of their own."""

    def __init__(self, file: Path, fits: Fits) -> None:
        self._file = file
        self._fits = fits

    def good_lines(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        if not lines:
            return
        self._file.write_bytes(b"\n".join(lines) + b"\n")
        if self._fits(self._file):
            yield from lines
        elif len(lines) > 1:
            middle = len(lines) // 2
            yield from self.good_lines(lines[:middle])
            yield from self.good_lines(lines[middle:])


def _clean_slice(item: Slice, data: bytes, write: Callable[[bytes], object], judge: _Judge) -> list[Gap]:
    bad, pending = 0, list[bytes]()
    gaps = []

    def judged() -> int:
        good = list(judge.good_lines(pending))
        write(b"".join(line + b"\n" for line in good))
        return len(pending) - len(good)

    try:
        for line in read_lines(data):
            if not _is_event(line):
                bad += 1
                continue
            pending.append(in_usual_names(line) if _OTHER_SPELLING in line else line)
            if len(pending) == _LINES_AT_ONCE:
                bad += judged()
                pending.clear()
    except TornSegment as exc:
        gaps.append(Gap(item.key, 0, f"damaged: {exc}"))
    bad += judged()
    if bad:
        gaps.append(Gap(item.key, bad, "lines that are no events of Ray"))
    return gaps


def _is_event(line: bytes) -> bool:
    """Whether the line is a JSON object."""
    if not line.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
