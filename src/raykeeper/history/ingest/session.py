"""A session as endpoints see it: its tables as local files, its small records, and how much of it is there."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Protocol

from raykeeper.errors import Unavailable
from raykeeper.history.ingest.batches import may_hold
from raykeeper.history.ingest.manifests import TableFile
from raykeeper.history.ingest.messages import Gap
from raykeeper.history.ingest.tables import TASK_LIST, TASKS, UNFINISHED_TASKS
from raykeeper.history.store.disk_cache import DamagedFile, LocalCache
from raykeeper.history.store.session_state import SessionState
from raykeeper.layout.keys import PolledKey, SessionId
from raykeeper.layout.records import ClosedRecord, EndRecord, NodeRecord, PolledAnswer, SessionRecord
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

_SUPERSEDED = (TASKS.name, TASK_LIST.name, UNFINISHED_TASKS.name)
"""Tables of which newer rows replace older ones of the same task; the others are read as they are."""


@dataclass(frozen=True)
class Layers:
    """The files of one table as a query reads them."""

    files: tuple[Path, ...]
    newer: tuple[Path, ...] = ()
    """Read as well."""
    newer_tasks: tuple[Path, ...] = ()
    """Rows of `files` whose task is in these are not read."""


class Tables(Mapping[str, tuple[Path, ...]]):
    """The files of each table, by its name: brought here when a query needs them, and some supersede others."""

    @property
    def owner(self) -> str:
        """The namespace of the session: queries of one leave room for those of others."""
        return ""

    @abstractmethod
    def layers(self, name: str) -> Layers: ...

    @abstractmethod
    async def fetch(self, names: Sequence[str]) -> None:
        """Have the files of these tables ready."""

    @abstractmethod
    async def restore(self, names: Sequence[str]) -> None:
        """Bring back files that are gone."""

    @abstractmethod
    def distrust(self) -> bool:
        """Whether the files came from elsewhere, and are made anew since they could not be read."""

    @abstractmethod
    def of_tasks(self, first_id: str, last_id: str) -> Tables:
        """The same tables for a statement about tasks between these ids alone: it may need fewer files."""


class FixedTables(Tables):
    """Files that are all here and stay."""

    def __init__(self, files: Mapping[str, Sequence[Path]]) -> None:
        self._files = {name: tuple(paths) for name, paths in files.items()}

    def layers(self, name: str) -> Layers:
        return Layers(self._files.get(name, ()))

    async def fetch(self, names: Sequence[str]) -> None:
        """They are here."""

    async def restore(self, names: Sequence[str]) -> None:
        raise Unavailable("tables", f"files of {', '.join(names)} are gone")

    def of_tasks(self, first_id: str, last_id: str) -> Tables:  # noqa: ARG002 - all of them are at hand
        return self

    def __getitem__(self, name: str) -> tuple[Path, ...]:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def distrust(self) -> bool:
        return False


class TablesLost(Unavailable):
    """Tables are gone, or cannot be read; the next look at the session makes them anew."""

    def __init__(self) -> None:
        super().__init__("tables", "they were deleted or damaged and are made anew", retry_after=3)


class OnDamage(Protocol):
    def __call__(self, *, in_store: bool) -> bool:
        """Whether the tables are made anew: the store has other ones, or a query cannot read them."""
        ...


class SessionTables(Tables):
    """The files of each table, by its name. They are on disk once `fetch` was called for it."""

    def __init__(
        self,
        store: ObjectStore,
        cache: LocalCache,
        tables: Mapping[str, Sequence[TableFile]],
        newer: Mapping[str, Sequence[TableFile]] | None = None,
        on_damage: OnDamage | None = None,
        owner: str = "",
    ) -> None:
        self._owner = owner
        self._store = store
        self._cache = cache
        self._on_damage = on_damage
        self._sizes = {
            file.key: file.size for layer in (tables, newer or {}) for some in layer.values() for file in some
        }
        self._keys = {name: [file.key for file in files] for name, files in tables.items()}
        self._newer = {name: [file.key for file in files] for name, files in (newer or {}).items()}
        self._fetched: set[str] = set()
        self._held: list[Path] = []
        weakref.finalize(self, cache.release, self._held)

    @property
    def owner(self) -> str:
        return self._owner

    async def fetch(self, names: Sequence[str]) -> None:
        """Have the files of these tables here, for as long as this object lives. Raises TablesLost."""
        await self.hold({key for name in names for key in self.keys_of(name)})

    async def restore(self, names: Sequence[str]) -> None:
        """Bring back files of these tables that are gone from the disk. Raises TablesLost where the store has none."""
        await self.bring_back({key for name in names for key in self.keys_of(name)})

    def layers(self, name: str) -> Layers:
        """The files of a table, and those whose rows are read instead of some of them."""
        return self.layered(name, self._keys.get(name, ()))

    def of_tasks(self, first_id: str, last_id: str) -> Tables:
        """The same tables for a statement about tasks between these ids alone: it needs few files of `tasks`."""
        chosen = [key for key in self._keys.get(TASKS.name, ()) if may_hold(PurePosixPath(key).stem, first_id, last_id)]
        return TasksExcerpt(self, tuple(chosen))

    async def hold(self, keys: Collection[str]) -> None:
        missing = sorted(set(keys) - self._fetched)
        if not missing:
            return
        try:
            self._held += await self._cache.hold(self._store, {key: self._sizes[key] for key in missing})
        except (ObjectMissing, DamagedFile) as exc:
            self._damaged(in_store=True)
            raise TablesLost from exc
        self._fetched.update(missing)

    async def bring_back(self, keys: Collection[str]) -> None:
        try:
            await self._cache.restore(self._store, self._fetched.intersection(keys))
        except ObjectMissing as exc:
            self._damaged(in_store=True)
            raise TablesLost from exc

    def distrust(self) -> bool:
        """Whether these tables came from the store, and are made anew because a query could not read them."""
        return self._damaged(in_store=False)

    def _damaged(self, *, in_store: bool) -> bool:
        return self._on_damage is not None and self._on_damage(in_store=in_store)

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
class TasksExcerpt(Tables):
    """A session's tables with some of the files of `tasks`; those of all others."""

    whole: SessionTables
    tasks: tuple[str, ...]

    @property
    def owner(self) -> str:
        return self.whole.owner

    async def fetch(self, names: Sequence[str]) -> None:
        """As of SessionTables, which holds the files. Raises TablesLost."""
        await self.whole.hold(self._keys_of(names))

    async def restore(self, names: Sequence[str]) -> None:
        """As of SessionTables. Raises TablesLost."""
        await self.whole.bring_back(self._keys_of(names))

    def distrust(self) -> bool:
        return self.whole.distrust()

    def layers(self, name: str) -> Layers:
        return self.whole.layered(name, self.tasks) if name == TASKS.name else self.whole.layers(name)

    def of_tasks(self, first_id: str, last_id: str) -> Tables:
        return self.whole.of_tasks(first_id, last_id)

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


async def _no_keys(_path: str) -> tuple[PolledKey, ...]:
    return ()


async def _no_answer(_key: PolledKey) -> PolledAnswer | None:
    return None


@dataclass(frozen=True)
class PolledHistory:
    """Earlier answers of the head's dashboard, read when they are asked for."""

    keys_of: Callable[[str], Awaitable[tuple[PolledKey, ...]]]
    read: Callable[[PolledKey], Awaitable[PolledAnswer | None]]


@dataclass(frozen=True)
class Session:
    """One session, ready to be read."""

    id: SessionId
    tables: Tables
    """Local Parquet files of each table."""
    as_of: datetime
    """What was sealed later is not in it."""
    state: SessionState = field(default_factory=SessionState)
    progress: Progress = Progress(1, 1)
    history: PolledHistory = PolledHistory(_no_keys, _no_answer)
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

    @property
    def ended_at(self) -> datetime | None:
        """When the cluster ended; None while it runs."""
        return self.state.ended_at

    @property
    def is_final(self) -> bool:
        """No node will send more."""
        return self.state.is_final

    async def polled_versions(self, path: str) -> tuple[PolledKey, ...]:
        """Every answer that was kept for a path, oldest first; `history.read` opens one."""
        return await self.history.keys_of(path)
