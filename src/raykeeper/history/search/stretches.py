"""The stored pieces of a node's log files, in the order in which they are searched: the newest packs first. Pure.

Each byte of a file is in one stretch, however often it was shipped. Where a file goes on in another stretch, a line may
be cut between them: it belongs to the stretch in which it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from raykeeper.history.search.asking import Wanted
from raykeeper.layout.logs import Hole, Slice, StoredLog, plan_read

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


def node_stretches(logs: Iterable[StoredLog], wanted: Wanted) -> tuple[list[Stretch], int]:
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


def _of_file(stored: StoredLog, pieces: Sequence[Slice], wanted: Wanted) -> Iterator[Stretch]:
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
