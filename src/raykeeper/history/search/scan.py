"""The stored pieces of a node's logs in order, each byte once, and the search of one batch of them in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from raykeeper.history.search.match import LINE_BYTES, Matcher
from raykeeper.history.search.model import SearchRequest
from raykeeper.layout.logs import Hole, Slice, StoredLog, plan_read
from raykeeper.layout.packs import DamagedPack, read_frame

BATCH_BYTES = 4 << 20
"""Of text that is searched in one go: long enough for a thread to be worth it, short enough for a few at a time."""


@dataclass(frozen=True)
class Stretch:
    """One piece of one file."""

    stored: StoredLog
    piece: Slice
    goes_before: bool
    """A wanted piece ends where this one begins, and looks for the line at that border."""
    goes_on: bool
    """Another piece begins where this one ends."""
    looks_behind: bool
    """That piece is wanted as well, so that a line which begins exactly there is looked for here."""

    @property
    def place(self) -> tuple[str, int]:
        """Key of the pack, and where in it."""
        return self.piece.pack, self.piece.frame.position


def node_stretches(logs: Iterable[StoredLog], wanted: SearchRequest) -> tuple[list[Stretch], int]:
    """Everything of a node that is wanted, and how many bytes of its files are not stored. Raises InvalidPattern."""
    found, lost = list[Stretch](), 0
    for stored in wanted.files_of(logs):
        plan = plan_read(stored, 0, stored.size)
        found += _of_file(stored, [piece for piece in plan if isinstance(piece, Slice)], wanted)
        lost += sum(piece.end - piece.start for piece in plan if isinstance(piece, Hole))
    found.sort(key=lambda stretch: stretch.piece.frame.position)
    found.sort(key=lambda stretch: stretch.piece.pack, reverse=True)
    return found, lost


def batches(stretches: Sequence[Stretch], batch_bytes: int = BATCH_BYTES) -> Iterator[list[Stretch]]:
    """As many at a time as make up so much text. Which they are follows from where the first one is."""
    batch, size = list[Stretch](), 0
    for stretch in stretches:
        length = stretch.piece.frame.length
        if batch and size + length > batch_bytes:
            yield batch
            batch, size = [], 0
        batch.append(stretch)
        size += length
    if batch:
        yield batch


def from_place(stretches: Sequence[Stretch], pack: str, position: int) -> list[Stretch]:
    """Those that are searched from this place on."""
    return [one for one in stretches if one.piece.pack < pack or (one.piece.pack == pack and _is_at(one, position))]


def _is_at(stretch: Stretch, position: int) -> bool:
    return stretch.piece.frame.position >= position


def _of_file(stored: StoredLog, pieces: Sequence[Slice], wanted: SearchRequest) -> Iterator[Stretch]:
    """What is wanted of a file: all of it, or what was written within the time, as far as when it was read tells."""
    read_before = [0, *(piece.frame.read_ns for piece in pieces)]
    is_wanted = [wanted.has_time(began, piece.frame.read_ns) for began, piece in zip(read_before, pieces, strict=False)]
    touches = [False, *(one.end == other.start for one, other in pairwise(pieces)), False]
    for place, piece in enumerate(pieces):
        if is_wanted[place]:
            goes_on = touches[place + 1]
            yield Stretch(
                stored,
                piece,
                goes_before=touches[place] and is_wanted[place - 1],
                goes_on=goes_on,
                looks_behind=goes_on and is_wanted[place + 1],
            )


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
