"""One body on its way in: small ones gather in memory, large ones grow in a file."""

from __future__ import annotations

import asyncio
from functools import partial

from raykeeper.collector.events.budget import SpoolFull
from raykeeper.collector.events.disk import Batch, LargeBody
from raykeeper.collector.events.journal import HEADER_BYTES, BodyFlag
from raykeeper.collector.events.limits import KEPT_OF_CUT_BODY_BYTES, LARGE_BODY_BYTES, MAX_BODY_BYTES, SOFT_SHARE
from raykeeper.collector.events.spool import Spool


class IncomingBody:
    """Takes the parts of one body; `finish` returns once all of it is durable. End it with `finish` or `discard`."""

    def __init__(self, spool: Spool, flags: BodyFlag, expected_bytes: int) -> None:
        """Raises SpoolFull where there is no room for the expected bytes (0 if unknown)."""
        self._spool = spool
        self._flags = flags
        self._received_ns = spool.next_ns()
        self._max_bytes = min(MAX_BODY_BYTES, int(spool.budget.max_bytes * SOFT_SHARE))
        self._size = self._taken = self._in_memory = 0
        self._parts: list[bytes] = []
        self._head: list[bytes] = []
        self._large: LargeBody | None = None
        self._failure: SpoolFull | None = None
        self.backlog: asyncio.Future[None] | None = None
        """What must be done before more is read from the client, if anything."""
        if expected_bytes > self._max_bytes:
            self._flags |= BodyFlag.CUT
        # Room is asked for, and taken only as bytes come: a client that says a length and sends nothing has none.
        spool.budget.check(HEADER_BYTES + min(expected_bytes, self._max_bytes))
        self._take(HEADER_BYTES)

    def write(self, part: bytes) -> None:
        """Take the next part. A failure shows in `finish`: the rest of the body has to be read all the same."""
        self._size += len(part)
        if self._size > self._max_bytes and BodyFlag.CUT not in self._flags:
            self._cut()
        if self._failure is None and not self._has_enough():
            self._keep(part)

    async def finish(self) -> None:
        """Return once the body is durable. Raises SpoolFull where there was no room for it."""
        if self._large is not None and self._parts and self._failure is None:
            self._spill(self._large)
        if self.backlog is not None:
            await self.backlog
        if self._failure is not None:
            self.discard()
            raise self._failure
        await (self._append() if self._large is None else self._close_file(self._large))

    def discard(self) -> None:
        """Forget the body: the client went away, or there is no room."""
        self._spool.budget.give_back(self._taken)
        self._taken = self._in_memory = 0
        self._parts, self._head = [], []
        if self._large is not None:
            self._spool.on_disk_thread(self._large.discard)
            self._large = None

    def _has_enough(self) -> bool:
        return BodyFlag.CUT in self._flags and self._in_memory >= KEPT_OF_CUT_BODY_BYTES

    def _cut(self) -> None:
        """From now on only the beginning is kept: the body is longer than any may be."""
        head = self._head or self._parts
        self.discard()
        self._flags |= BodyFlag.CUT
        self._parts, self._in_memory = head, sum(map(len, head))
        self._take(HEADER_BYTES + self._in_memory)

    def _keep(self, part: bytes) -> None:
        try:
            self._take(HEADER_BYTES + self._size - self._taken)
        except SpoolFull as full:
            self._failure = full
            return
        self._parts.append(part)
        self._in_memory += len(part)
        if self._in_memory >= LARGE_BODY_BYTES and BodyFlag.CUT not in self._flags:
            self._large = self._large or LargeBody(self._spool.folder, self._received_ns)
            self._spill(self._large)

    def _take(self, size: int) -> None:
        if size > 0:
            self._spool.budget.take(size)
            self._taken += size

    def _spill(self, large: LargeBody) -> None:
        """Hand what is in memory to the disk thread. The beginning is remembered in case the body must be cut."""
        self._head = self._head or self._parts
        parts, self._parts, self._in_memory = self._parts, [], 0
        self.backlog = asyncio.ensure_future(self._written(self._spool.on_disk_thread(partial(large.write, parts))))

    async def _written(self, writing: asyncio.Future[None]) -> None:
        try:
            await writing
        except OSError as exc:
            self._failure = SpoolFull(str(exc))

    async def _close_file(self, large: LargeBody) -> None:
        try:
            closed = await self._spool.on_disk_thread(partial(large.close, self._flags, self._spool.next_ns()))
        except OSError as exc:
            self.discard()
            raise SpoolFull(str(exc)) from exc
        self._spool.budget.give_back(self._taken - closed.size)
        self._spool.add_closed(closed)

    async def _append(self) -> None:
        self._spool.budget.give_back(self._taken - HEADER_BYTES - self._in_memory)
        await self._spool.append(Batch(self._received_ns, self._flags, self._parts, self._in_memory))
