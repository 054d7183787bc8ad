"""Which segments are read together and into how many ranges tasks are cut. Pure: the same inputs give the same plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_PREFIX_BITS = 16  # the first four hex digits; random in every task but those that create actors


@dataclass(frozen=True)
class TaskRange:
    """All task ids whose first `bits` bits are `number`."""

    number: int
    bits: int

    @property
    def name(self) -> str:
        """Of the file that holds it; the range can be read off it."""
        return f"{self.bits:02d}-{self.number:05d}"

    @property
    def first(self) -> str:
        return f"{self.number << (_PREFIX_BITS - self.bits):04x}"

    @property
    def end(self) -> str:
        """Sorts behind every id of the range."""
        end = (self.number + 1) << (_PREFIX_BITS - self.bits)
        return f"{end:04x}" if end < 1 << _PREFIX_BITS else "g"

    def partitions(self, partition_bits: int) -> range:
        """The partitions, by the first `partition_bits` bits, that hold its ids."""
        finer = partition_bits - self.bits
        if finer <= 0:
            return range(self.number >> -finer, (self.number >> -finer) + 1)
        return range(self.number << finer, (self.number + 1) << finer)

    def may_overlap(self, name: str) -> bool:
        """Whether the file of that name can hold one of its ids."""
        other = parse_range(name)
        shared = min(self.bits, other.bits)
        return self.number >> (self.bits - shared) == other.number >> (other.bits - shared)


def task_ranges(bits: int) -> Iterator[TaskRange]:
    """All of them, in the order of task ids."""
    return (TaskRange(number, bits) for number in range(1 << bits))


def parse_range(name: str) -> TaskRange:
    """The range of a file name's last two parts. Raises ValueError for a name that no range has."""
    bits, number = map(int, name.rsplit("-", 2)[-2:])
    if not (0 <= bits <= _PREFIX_BITS and 0 <= number < 1 << bits):
        raise ValueError(f"{name!r} is the name of no range")
    return TaskRange(number, bits)


def may_hold(name: str, first_id: str, last_id: str) -> bool:
    """Whether the file of that name can hold a task id between these two, both included."""
    held = parse_range(name)
    return held.first <= last_id and first_id < held.end


BATCH_BYTES = 4 << 20
"""Of compressed segments read at a time: about 55 MB of text, and the step of progress. DuckDB holds all rows of a
batch, about 80 MB, while it parts them; a larger batch would go to disk and back."""

SMALL_BYTES = 4 << 20
"""New segments up to this are read in the server's own process; another one costs 0.3 s and 60 MB."""

SMALL_BATCH_BYTES = 1 << 20
"""As `BATCH_BYTES`, in the server's process: DuckDB's buffers take as much memory as a batch has text."""

RANGE_BYTES = 6 << 20
"""Of compressed segments whose tasks are merged in memory at a time: about 20,000 of them."""

LARGER_BYTES = (64 << 20, 512 << 20)
"""Above each of these, batches and ranges are twice as large: every range reads a file of every batch, so their numbers
must not both grow with the session."""

MAX_RANGE_BITS = 12
PARTITION_BITS = 6
"""Batches are written into at most 2^6 partitions, a file each; finer ranges read theirs through a filter."""

TABLES_VERSION = "5"
"""Part of every generation's name: raise it when the same events give other tables, and they are made anew."""


@dataclass(frozen=True, order=True)
class Segment:
    """One event segment in the store."""

    key: str
    size: int


@dataclass(frozen=True)
class PlannedBatch:
    name: str
    segments: tuple[Segment, ...]


def is_large(segments: Iterable[Segment]) -> bool:
    """Whether these are worth a process of their own."""
    return sum(segment.size for segment in segments) > SMALL_BYTES


def scale_of(input_bytes: int) -> int:
    """How many times larger batches, ranges and the memory for them are than those of a small session."""
    return 1 << sum(input_bytes > limit for limit in LARGER_BYTES)


def plan_batches(segments: Sequence[Segment]) -> list[PlannedBatch]:
    """The segments in the order of their keys (hour, then node), cut where a batch is full."""
    scale = scale_of(sum(segment.size for segment in segments))
    limit = BATCH_BYTES * scale if is_large(segments) else SMALL_BATCH_BYTES
    batches: list[PlannedBatch] = []
    pending: list[Segment] = []
    size = 0
    for segment in sorted(segments):
        if pending and size + segment.size > limit:
            batches.append(_batch(pending))
            pending, size = [], 0
        pending.append(segment)
        size += segment.size
    return [*batches, _batch(pending)] if pending else batches


def _batch(segments: Sequence[Segment]) -> PlannedBatch:
    return PlannedBatch(_digest(segment.key for segment in segments), tuple(segments))


def generation_name(input_keys: Iterable[str], cluster_end_ns: int | None, base: str = "") -> str:
    """Of the tables made from exactly these inputs upon those of another generation, and closed with the cluster.

    Upon another base the rows are the same, but not every byte of the files.
    """
    return _digest([TABLES_VERSION, base, str(cluster_end_ns), *sorted(input_keys)])


def work_name(session: str) -> str:
    """Of the folder in which a session's batches are read, so that a later ingest finds those already done."""
    return _digest([TABLES_VERSION, session])


def range_bits(input_bytes: int) -> int:
    """Bits of task ids by which ranges are cut, for so many bytes of segments."""
    ranges = -(-input_bytes // (RANGE_BYTES * scale_of(input_bytes)))
    return min(MAX_RANGE_BITS, max(0, ranges - 1).bit_length())


def is_worth_folding(folded_bytes: int, unfolded_bytes: int, new_bytes: int) -> bool:
    """Whether all tasks are to be merged anew, rather than kept apart those that changed.

    Each look rewrites what is unfolded, and each folding everything: the sum is least when their costs are equal.
    """
    return folded_bytes <= SMALL_BYTES or unfolded_bytes**2 > new_bytes * folded_bytes


def partition_bits(bits: int) -> int:
    return min(PARTITION_BITS, bits)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
