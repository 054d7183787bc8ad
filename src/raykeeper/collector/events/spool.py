"""The spool: a body is on disk, durably, before Ray hears 200.

Group commit: while the disk thread is busy bodies gather, and the next fsync is for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from raykeeper.clock import Clock
from raykeeper.collector.events.budget import DiskBudget, SpoolFull
from raykeeper.collector.events.disk import Batch, ClosedJournal, OpenJournal, take_over
from raykeeper.collector.events.durable import sync_folder
from raykeeper.collector.events.journal import HEADER_BYTES
from raykeeper.logs import Log
from raykeeper.times import to_ns

log = Log("raykeeper.collector.spool")
T = TypeVar("T")


class Spool:
    """Journals in a folder: one that grows, and those that wait to be sealed."""

    def __init__(
        self,
        folder: Path,
        budget: DiskBudget,
        clock: Clock,
        journal_max_bytes: int,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder = folder
        self.budget = budget
        self.closed: dict[Path, ClosedJournal] = {}
        """Waiting to be sealed, oldest first."""
        self.is_failing = False
        """Whether the disk refused the last bodies."""
        self._clock = clock
        self._journal_max_bytes = journal_max_bytes
        self._changed = changed
        self._last_ns = 0
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self._journal: OpenJournal | None = None
        self._retired: list[ClosedJournal] = []  # closed by the disk thread, not yet seen by the event loop
        self._first_at = 0.0
        self._waiting: list[tuple[Batch, asyncio.Future[None]]] = []
        self._is_committing = False

    def take_over(self) -> None:
        """Find what earlier lives left. Blocks; for the start."""
        for journal in take_over(self.folder, self.next_ns()):
            self._last_ns = max(self._last_ns, journal.closed_ns)
            self.closed[journal.path] = journal
            self.budget.add(journal.size)

    @property
    def open_bytes(self) -> int:
        """In the journal that grows."""
        return self._journal.size if self._journal else 0

    def bytes_until(self, moment_ns: int) -> int:
        """Of journals that may hold bodies received before `moment_ns`; closed ones are sealed soon anyway."""
        is_old = self._journal is not None and self._journal.opened_ns < moment_ns
        return sum(journal.size for journal in self.closed.values()) + (self.open_bytes if is_old else 0)

    @property
    def open_seconds(self) -> float:
        """Age of the first body in the journal that grows."""
        return self._clock.steady() - self._first_at if self._journal else 0.0

    def next_ns(self) -> int:
        """The wall clock in nanoseconds, later than any earlier answer: names and keys must not repeat."""
        self._last_ns = max(self._last_ns + 1, to_ns(self._clock.now()))
        return self._last_ns

    def append(self, batch: Batch) -> asyncio.Future[None]:
        """Done once the body is durable; SpoolFull where the disk refused it. The budget was taken by the caller."""
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, durable))
        if not self._is_committing:
            self._commit()
        return durable

    def on_disk_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run something after all that the disk thread was given before."""
        return asyncio.get_running_loop().run_in_executor(self._disk, work)

    async def close_journal(self) -> None:
        """End the journal that grows, so that it can be sealed; nothing where it is empty."""
        try:
            await self.on_disk_thread(partial(self._close, self.next_ns()))
        finally:
            self._add_retired()

    def add_closed(self, journal: ClosedJournal) -> None:
        self.closed[journal.path] = journal
        self._changed()

    def forget(self, journal: ClosedJournal, *, lost_bytes: int = 0) -> None:
        """Delete a journal whose events are safe elsewhere, but for those that somebody took out of it: these count
        as unsent.
        """
        journal.path.unlink(missing_ok=True)
        del self.closed[journal.path]
        self.budget.give_back(journal.size - lost_bytes)
        if lost_bytes:
            _tell_loss(lost_bytes, "the journal was changed by somebody else")

    def stop(self) -> None:
        """Wait for the disk thread to end."""
        self._disk.shutdown()

    def _commit(self) -> None:
        group, self._waiting = self._waiting, []
        self._is_committing = True
        done = self.on_disk_thread(partial(self._write, [batch for batch, _ in group], self.next_ns(), self.next_ns()))
        done.add_done_callback(partial(self._committed, group))

    def _write(self, batches: list[Batch], closed_ns: int, opened_ns: int) -> None:
        if self._journal is not None and self._is_used_up(self._journal):
            self._retire(self._journal, closed_ns)
        if self._journal is None:
            self._journal = OpenJournal(self.folder, opened_ns)  # syncs the folder, and so the new name of the last one
            self._first_at = self._clock.steady()
        self._journal.append(batches)

    def _is_used_up(self, journal: OpenJournal) -> bool:
        return journal.is_broken or journal.size >= self._journal_max_bytes

    def _committed(self, group: list[tuple[Batch, asyncio.Future[None]]], done: asyncio.Future[None]) -> None:
        self._is_committing = False
        self._add_retired()
        failure = done.exception()
        self.is_failing = failure is not None
        for batch, durable in group:
            if failure is not None:
                self.budget.give_back(HEADER_BYTES + batch.size)
            if durable.cancelled():
                continue
            if failure is None:
                durable.set_result(None)
            else:
                durable.set_exception(SpoolFull(str(failure)))
        self._changed()
        if self._waiting:
            self._commit()

    def _close(self, closed_ns: int) -> None:
        if self._journal is not None:
            self._retire(self._journal, closed_ns)
            sync_folder(self.folder)

    def _retire(self, journal: OpenJournal, closed_ns: int) -> None:
        """End the journal that grows. One that was taken away is lost, and counts as unsent; the next one goes on."""
        self._journal = None
        try:
            self._retired.append(journal.close(closed_ns))
        except OSError as exc:
            _tell_loss(journal.size, str(exc))

    def _add_retired(self) -> None:
        while self._retired:
            self.add_closed(self._retired.pop())


def _tell_loss(lost_bytes: int, cause: str) -> None:
    cure = "give the collector a volume of its own"
    log.warning("acknowledged events were removed from the spool", bytes=lost_bytes, cause=cause, cure=cure)
