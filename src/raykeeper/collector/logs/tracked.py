"""One log file as the shipper knows it: who it is, what the bucket has of it, how it is recognised."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from raykeeper.collector.logs.kinds import Kind, kind_of

SIGNATURE_BYTES = 64  # a log line's time alone is 23
UNKNOWN_TIME = 1 << 62
"""As the time of a file's last write: whatever the next look finds is another, and it does not count as quiet."""


class Signature(NamedTuple):
    """The first and the last bytes that were sent of a file: enough to tell it from another with the same inode."""

    head: bytes = b""
    tail: bytes = b""

    def extended(self, data: bytes) -> Signature:
        """After `data` was sent too."""
        head = self.head if len(self.head) == SIGNATURE_BYTES else (self.head + data[:SIGNATURE_BYTES])
        return Signature(head[:SIGNATURE_BYTES], (self.tail + data[-SIGNATURE_BYTES:])[-SIGNATURE_BYTES:])

    def matches(self, descriptor: int, sent: int) -> bool:
        """Whether the open file still begins, and still continues before `sent`, as it did."""
        head = os.pread(descriptor, len(self.head), 0)
        return head == self.head and os.pread(descriptor, len(self.tail), sent - len(self.tail)) == self.tail


class Group(NamedTuple):
    """What goes into one pack: files of one node in one session."""

    session: str
    node_id: str


class SentTail(NamedTuple):
    """Bytes that the bucket has while it lacks some before them."""

    start: int
    end: int
    tail: bytes
    """The last of them."""


class Version(NamedTuple):
    """What tells one content of a rewritten file from the next without reading it."""

    size: int
    mtime_ns: int


@dataclass(slots=True, eq=False)
class TrackedFile:
    """One generation of one file."""

    session: str
    inode: int
    path: str
    """As the file system spells it now, relative to `logs/`."""
    generation: str
    first_seen: float
    """By the steady clock."""
    is_whole: bool = False
    """Rewritten in place: the last version is all that is kept."""
    node_id: str | None = None
    sent: int = 0
    """Bytes from the start that the bucket has."""
    signature: Signature = field(default_factory=Signature)
    sent_version: Version | None = None
    """Of a rewritten file: what the bucket has."""
    sent_digest: bytes = b""
    told_name: str = ""
    """The name that the bucket knows it by."""
    size: int = 0
    mtime_ns: int = UNKNOWN_TIME
    is_deleted: bool = False
    misses: int = 0
    """Listings in a row that did not show it."""
    rewrites: int = 0
    """How often in a row its content was replaced by as much again."""
    unsent_since: float | None = None
    served: int = 0
    """Number of the last pack that has bytes of it: who waits longest is next."""
    not_before: float = 0.0
    """After a failure to read it: when to try again."""
    tail_sent: SentTail | None = None
    """At a node's end the last bytes go first."""
    is_finished: bool = False
    was_here_before: bool = False
    """It was found by the first look after the collector's start."""
    name: str = field(init=False)
    """The path as packs spell it."""
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        self.rename(self.path)

    def rename(self, path: str) -> None:
        """The same file under another name."""
        self.path, self.name, self.kind = path, path_text(path), kind_of(path)

    @property
    def has_news(self) -> bool:
        """Whether there is anything the bucket should be told."""
        if self.is_whole:
            return self.sent_version != Version(self.size, self.mtime_ns) and self.size > 0
        return self.size > self.sent or self.name != self.told_name

    @property
    def unsent_ranges(self) -> list[tuple[int, int]]:
        """The byte ranges that the bucket does not have."""
        if self.is_whole:
            return [(0, self.size)] if self.has_news else []
        if self.tail_sent is None:
            ranges = [(self.sent, self.size)]
        else:
            ranges = [(self.sent, self.tail_sent.start), (self.tail_sent.end, self.size)]
        return [(start, end) for start, end in ranges if start < end]

    @property
    def unsent(self) -> int:
        """Bytes that the bucket does not have."""
        return sum(end - start for start, end in self.unsent_ranges)

    @property
    def group(self) -> Group | None:
        return None if self.node_id is None else Group(self.session, self.node_id)


def path_text(path: str) -> str:
    """The path as text that any reader can hold: bytes that are not UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
