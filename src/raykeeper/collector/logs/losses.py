"""What could not be read, was given up or is gone: said once, counted, and written into the next pack as gaps."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from raykeeper.collector.logs.tracked import Group, TrackedFile, path_text
from raykeeper.collector.metrics import CollectorMetrics
from raykeeper.layout.logs import DELETED
from raykeeper.layout.packs import Gap, index_bytes
from raykeeper.logs import Log

log = Log("raykeeper.collector.logs")

MAX_COMPLAINTS = 1000
"""Paths that are complained of; further ones are only counted, each time they are met."""
MAX_GAPS = 20_000
"""That wait for a pack, of all nodes together. Of further ones the bytes are counted, and their files not named."""


class Losses:
    """The gaps that wait for a pack, and the counts since the start."""

    def __init__(self, unknown_node: str, metrics: CollectorMetrics) -> None:
        self._unknown_node = unknown_node
        self._metrics = metrics
        self._gaps: dict[Group, list[Gap]] = {}
        self._gap_count = 0
        self._told_losses = 0
        self._complained: set[str] = set()
        self._left_out: dict[str, int] = {}
        """By session, folders that are not looked at, or only in part."""
        self.lost_bytes = 0

    @property
    def groups(self) -> tuple[Group, ...]:
        """Those with gaps that no pack has yet."""
        return tuple(self._gaps)

    def lost(self, file: TrackedFile, reason: str) -> None:
        """Give up what is unsent of a file."""
        for start, end in file.unsent_ranges:
            gap = Gap(file.name, file.generation, start, end - start, reason)
            self._add(file.group or Group(file.session, self._unknown_node), gap)
            self.lost_bytes += gap.length
            self._metrics.log_lost_bytes.inc(gap.length)
            if self._told_losses < MAX_COMPLAINTS:
                self._told_losses += 1
                log.warning("log bytes given up", path=gap.path, offset=start, length=gap.length, reason=reason)

    def deleted(self, file: TrackedFile) -> None:
        """Tell that a file which the bucket knows is gone, so that it is not taken for one that has its name now."""
        if file.group is not None and file.told_name:
            self._add(file.group, Gap(file.name, file.generation, file.size, 0, DELETED))

    def _add(self, group: Group, gap: Gap) -> None:
        if self._gap_count < MAX_GAPS:
            self._gap_count += 1
            self._gaps.setdefault(group, []).append(gap)

    def unreadable(self, path: str, exc: OSError) -> None:
        """Say once for each path that it cannot be read."""
        if path in self._complained:
            return
        self._metrics.log_read_errors.inc()
        if len(self._complained) < MAX_COMPLAINTS:
            self._complained.add(path)
            log.warning("log cannot be read", path=path_text(path), reason=exc.strerror or str(exc))

    def left_out(self, session: str, folders: AbstractSet[str]) -> None:
        """Say once for each session that there are more names below its `logs/` than are looked at."""
        if folders and session not in self._left_out:
            some = sorted(map(path_text, folders))[:3]
            log.warning("too many log files, some are left out", session=session, folders=len(folders), some=some)
        if folders or session in self._left_out:
            self._left_out[session] = len(folders)
        self._metrics.log_folders_left_out.set(sum(self._left_out.values()))

    def forget(self, session: str) -> None:
        """The session is no longer there."""
        self._left_out.pop(session, None)
        self._metrics.log_folders_left_out.set(sum(self._left_out.values()))

    def gaps(self, group: Group, limit_bytes: int) -> tuple[Gap, ...]:
        """The oldest gaps of a group, as many as take no more of a pack's index than that, and one at least."""
        taken, size = list[Gap](), 0
        for gap in self._gaps.get(group, ()):
            size += index_bytes(gap.path)
            if taken and size > limit_bytes:
                break
            taken.append(gap)
        return tuple(taken)

    def told(self, group: Group, gaps: tuple[Gap, ...]) -> None:
        """The bucket has these gaps, which `gaps` gave."""
        self._gap_count -= len(gaps)
        left = self._gaps.pop(group, [])[len(gaps) :]
        if left:
            self._gaps[group] = left
