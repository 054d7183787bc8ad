"""Searches the text of one batch, in a thread: lines that are all in it. Those that are cut at its ends are left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from raykeeper.history.search.matching import LINE_BYTES, Matcher
from raykeeper.history.search.stretches import Stretch
from raykeeper.layout.logs import StoredLog
from raykeeper.layout.packs import DamagedPack, read_frame

Packed = Mapping[tuple[str, int], bytes | str]
"""The bytes of each frame by its place, or why they could not be had."""


@dataclass(frozen=True)
class Run:
    """Stretches of one file that follow each other without a gap, with their text."""

    stored: StoredLog
    start: int
    text: bytes
    goes_before: bool
    goes_on: bool
    looks_behind: bool
    hits: tuple[tuple[int, int], ...] = ()
    """Lines that both begin and end in the run: offsets in the file."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def head(self) -> bytes:
        """Up to the first end of a line: the rest of a line that began before; all of it if no line ends here."""
        at = self.text.find(b"\n")
        return self.text if at < 0 else self.text[:at]

    @property
    def joins_before(self) -> bool:
        """The run before it looks for its first line. A head longer than lines may be begins a piece of its own."""
        return self.goes_before and len(self.head) <= LINE_BYTES

    @property
    def has_line_end(self) -> bool:
        return b"\n" in self.text

    @property
    def tail_start(self) -> int:
        """Where the last line begins, which may go on elsewhere."""
        return self.start + self.text.rfind(b"\n") + 1


@dataclass(frozen=True)
class Scanned:
    """What one batch held."""

    runs: tuple[Run, ...]
    """By path and offset."""
    damaged: tuple[tuple[str, str], ...]
    """Keys of packs of which frames could not be read, each with the reason."""


def scan(batch: Sequence[Stretch], packed: Packed, matcher: Matcher) -> Scanned:
    """Every line of the batch that is a hit and lies within one run."""
    texts, damaged = list[tuple[Stretch, bytes | None]](), dict[str, str]()
    for stretch in batch:
        try:
            texts.append((stretch, _text(stretch, packed)))
        except DamagedPack as exc:
            damaged.setdefault(stretch.piece.pack, str(exc))
            texts.append((stretch, None))
    runs = list(_runs(texts))
    texts.clear()  # they are in the runs by now, and each is megabytes
    return Scanned(tuple(_searched(run, matcher) for run in runs), tuple(damaged.items()))


def _text(stretch: Stretch, packed: Packed) -> bytes:
    found, piece = packed[stretch.place], stretch.piece
    if isinstance(found, str):
        raise DamagedPack(found)
    return read_frame(piece.frame, found)[piece.start - piece.frame.offset : piece.end - piece.frame.offset]


def _runs(texts: Iterable[tuple[Stretch, bytes | None]]) -> Iterator[Run]:
    ordered = sorted(texts, key=lambda one: (one[0].stored.path, one[0].stored.generation, one[0].piece.start))
    group: list[tuple[Stretch, bytes]] = []
    for stretch, text in ordered:
        if group and (text is None or not _follows(group[-1][0], stretch)):
            yield _run(group)
            group = []
        if text is not None:
            group.append((stretch, text))
        elif stretch.goes_on:
            # Nothing is left of it, but the line that begins behind it was left to it.
            yield Run(stretch.stored, stretch.piece.end, b"", False, True, stretch.looks_behind)
    if group:
        yield _run(group)


def _follows(one: Stretch, other: Stretch) -> bool:
    return one.stored is other.stored and one.piece.end == other.piece.start


def _run(group: Sequence[tuple[Stretch, bytes]]) -> Run:
    first, last = group[0][0], group[-1][0]
    text = b"".join(text for _, text in group)
    return Run(first.stored, first.piece.start, text, first.goes_before, last.goes_on, last.looks_behind)


def _searched(run: Run, matcher: Matcher) -> Run:
    """With the hits between the first and the last end of a line, or the run's own ends where nothing joins them."""
    begin = len(run.head) + 1 if run.joins_before else 0
    end = run.tail_start - run.start if run.goes_on else len(run.text)
    if begin >= end:
        return run
    found = (span for span in matcher.find(run.text) if begin <= span[0] < end)
    return replace(run, hits=tuple((run.start + start, run.start + stop) for start, stop in found))
