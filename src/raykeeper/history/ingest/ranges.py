"""Ranges of task ids: the pieces in which tasks are merged, each small enough for memory and a file."""

from __future__ import annotations

from collections.abc import Iterator
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
    """The range of a file name's last two parts."""
    bits, number = name.rsplit("-", 2)[-2:]
    return TaskRange(int(number), int(bits))


def may_hold(name: str, first_id: str, last_id: str) -> bool:
    """Whether the file of that name can hold a task id between these two, both included."""
    held = parse_range(name)
    return held.first <= last_id and first_id < held.end
