"""Which bytes are read next: in the daily run by turns, at a node's end by importance. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from raykeeper.collector.logs.kinds import Kind
from raykeeper.collector.logs.reading import FRAME_BYTES, Range
from raykeeper.collector.logs.tracked import Group, TrackedFile

Queue = tuple[Group, deque[Range]]


def plan_turn(files: Iterable[TrackedFile], kinds: frozenset[Kind], now: float) -> Queue | None:
    """What the next pack is made of: every file of one node that has news of these kinds, who waited longest first.

    A name or an empty file is no reason for a pack of its own and waits for the components' turn.
    """
    ready = [file for file in files if file.not_before <= now and _is_due(file, kinds)]
    ready.sort(key=lambda file: (file.served, file.kind, -file.mtime_ns))
    queues = _by_group([Range(file, file.sent, file.size) for file in ready])
    return queues[0] if queues else None


def plan_flush(files: Iterable[TrackedFile]) -> list[Queue]:
    """Everything, the most wanted first: the user's output before Ray's own logs, of each first the last bytes of every
    file and then the rest, newest files first.
    """
    known = sorted(files, key=lambda file: -file.mtime_ns)
    queues: list[Queue] = []
    for kind in Kind:
        ranges = [wanted for file in known if file.kind is kind for wanted in _ranges(file)]
        queues += _by_group([wanted for wanted in ranges if wanted.end == wanted.file.size])
        queues += _by_group([wanted for wanted in ranges if wanted.end != wanted.file.size])
    return queues


def _is_due(file: TrackedFile, kinds: frozenset[Kind]) -> bool:
    return Kind.COMPONENT in kinds or (file.kind in kinds and file.unsent > 0)


def _ranges(file: TrackedFile) -> list[Range]:
    """The end of a file, and what is before it."""
    start = file.size - FRAME_BYTES
    if file.is_whole or start <= file.sent or file.tail_sent is not None:
        return [Range(file, file.sent, file.size)]
    return [Range(file, start, file.size), Range(file, file.sent, start)]


def _by_group(ranges: Sequence[Range]) -> list[Queue]:
    """The ranges of files whose node is known, a queue for each node, in the order of their first."""
    queues: dict[Group, deque[Range]] = {}
    for wanted in ranges:
        if wanted.file.group is not None:
            queues.setdefault(wanted.file.group, deque()).append(wanted)
    return list(queues.items())
