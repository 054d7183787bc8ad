"""A session as endpoints see it: its tables as local files, its small records, and how much of it is there."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from raykeeper.errors import Unavailable
from raykeeper.history.database import Layers
from raykeeper.history.ingest.jobs import Gap
from raykeeper.history.ingest.manifests import TableFile
from raykeeper.history.ingest.ranges import may_hold
from raykeeper.history.localcache import LocalCache
from raykeeper.history.tables import TASK_LIST, TASKS, UNFINISHED_TASKS
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.records import ClosedRecord, EndRecord, NodeRecord, PolledAnswer, SessionRecord
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_SUPERSEDED = (TASKS.name, TASK_LIST.name, UNFINISHED_TASKS.name)
"""Tables of which newer rows replace older ones of the same task; the others are read as they are."""


class TablesLost(Unavailable):
    """Tables that were not published yet are gone from the local disk; the next look at the session makes them anew."""

    def __init__(self) -> None:
        super().__init__("tables", "they were deleted from the cache and are made anew", retry_after=3)


class SessionTables(Mapping[str, tuple[Path, ...]]):
    """The files of each table, by its name. They are on disk once `fetch` was called for it."""

    def __init__(
        self,
        store: ObjectStore,
        cache: LocalCache,
        tables: Mapping[str, Sequence[TableFile]],
        newer: Mapping[str, Sequence[TableFile]] | None = None,
    ) -> None:
        self._store = store
        self._cache = cache
        self._keys = {name: [file.key for file in files] for name, files in tables.items()}
        self._newer = {name: [file.key for file in files] for name, files in (newer or {}).items()}
        self._fetched: set[str] = set()
        self._held: list[Path] = []
        weakref.finalize(self, cache.release, self._held)

    async def fetch(self, names: Sequence[str]) -> None:
        """Have the files of these tables here, for as long as this object lives. Raises TablesLost."""
        await self.hold({key for name in names for key in self.keys_of(name)})

    async def restore(self, names: Sequence[str]) -> None:
        """Bring back files of these tables that are gone from the disk. Raises TablesLost where the store has none."""
        await self.bring_back({key for name in names for key in self.keys_of(name)})

    def layers(self, name: str) -> Layers:
        """The files of a table, and those whose rows are read instead of some of them."""
        return self.layered(name, self._keys.get(name, ()))

    def of_tasks(self, first_id: str, last_id: str) -> TasksExcerpt:
        """The same tables for a statement about tasks between these ids alone: it needs few files of `tasks`."""
        chosen = [key for key in self._keys.get(TASKS.name, ()) if may_hold(PurePosixPath(key).stem, first_id, last_id)]
        return TasksExcerpt(self, tuple(chosen))

    async def hold(self, keys: Collection[str]) -> None:
        missing = sorted(set(keys) - self._fetched)
        if not missing:
            return
        try:
            self._held += await self._cache.hold(self._store, missing)
        except ObjectMissing as exc:
            raise TablesLost from exc
        self._fetched.update(missing)

    async def bring_back(self, keys: Collection[str]) -> None:
        try:
            await self._cache.restore(self._store, self._fetched.intersection(keys))
        except ObjectMissing as exc:
            raise TablesLost from exc

    def layered(self, name: str, keys: Iterable[str]) -> Layers:
        """These files of a table, with those that supersede some of their rows."""
        return Layers(
            self._paths(keys),
            self._paths(self._newer.get(name, ())),
            self._paths(self._newer.get(TASK_LIST.name, ())) if name in _SUPERSEDED else (),
        )

    def keys_of(self, name: str, chosen: Iterable[str] | None = None) -> set[str]:
        """All objects that a query of the table reads, or of a choice of its files."""
        if name not in self._keys:
            return set()
        files = self._keys[name] if chosen is None else chosen
        return {*files, *self._newer.get(name, ()), *self._newer.get(TASK_LIST.name, ())}

    def _paths(self, keys: Iterable[str]) -> tuple[Path, ...]:
        return tuple(self._cache.held_path(self._store, key) for key in keys)

    def __getitem__(self, name: str) -> tuple[Path, ...]:
        """All files of a table; where a session is tailed, `layers` tells which of their rows count."""
        return self._paths([*self._keys[name], *self._newer.get(name, ())])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True)
class TasksExcerpt(Mapping[str, tuple[Path, ...]]):
    """A session's tables with some of the files of `tasks`; those of all others."""

    whole: SessionTables
    tasks: tuple[str, ...]

    async def fetch(self, names: Sequence[str]) -> None:
        """As of SessionTables, which holds the files. Raises TablesLost."""
        await self.whole.hold(self._keys_of(names))

    async def restore(self, names: Sequence[str]) -> None:
        """As of SessionTables. Raises TablesLost."""
        await self.whole.bring_back(self._keys_of(names))

    def layers(self, name: str) -> Layers:
        return self.whole.layered(name, self.tasks) if name == TASKS.name else self.whole.layers(name)

    def _keys_of(self, names: Sequence[str]) -> set[str]:
        chosen = {TASKS.name: self.tasks}
        return {key for name in names for key in self.whole.keys_of(name, chosen.get(name))}

    def __getitem__(self, name: str) -> tuple[Path, ...]:
        return self.layers(name).files if name == TASKS.name else self.whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole)

    def __len__(self) -> int:
        return len(self.whole)


@dataclass(frozen=True)
class Progress:
    """How far the ingest of what is shown has come."""

    done_bytes: int
    total_bytes: int

    @property
    def is_done(self) -> bool:
        return self.done_bytes >= self.total_bytes


@dataclass(frozen=True)
class PolledHistory:
    """Earlier answers of the head's dashboard, read when they are asked for."""

    keys_of: Callable[[str], Awaitable[tuple[PolledKey, ...]]]
    read: Callable[[PolledKey], Awaitable[PolledAnswer | None]]


@dataclass(frozen=True)
class OpenedSession:
    """One session, ready to be read."""

    id: SessionId
    tables: SessionTables
    as_of: datetime
    """What was sealed later is not in it."""
    is_final: bool
    """No node will send more."""
    ended_at: datetime | None
    """When the cluster ended; None while it runs."""
    progress: Progress
    history: PolledHistory
    record: SessionRecord | None = None
    closed: ClosedRecord | None = None
    nodes: tuple[NodeRecord, ...] = ()
    ends: tuple[EndRecord, ...] = ()
    polled: Mapping[str, PolledAnswer] = field(default_factory=dict)
    """The newest answer for each path."""
    gaps: tuple[Gap, ...] = ()
    """What should be in the tables and is not."""
    tasks: int = 0
    """Attempts in the tables."""

    async def polled_versions(self, path: str) -> tuple[PolledKey, ...]:
        """Every answer that was kept for a path, oldest first; `history.read` opens one."""
        return await self.history.keys_of(path)
