"""Sessions as collectors leave them, small and whole, for tests of what is kept and what is removed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from raykeeper.history.retention_policy import Outcome, RetentionPolicy, Rule
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    SessionId,
    end_record_key,
    node_record_key,
    session_record_key,
    table_key,
)
from raykeeper.layout.records import (
    CatalogEnd,
    CatalogStart,
    EndRecord,
    NodeRecord,
    SessionRecord,
    encode_record,
)
from raykeeper.layout.retention import RETENTION_PREFIX
from raykeeper.layout.segments import compress_lines
from raykeeper.layout.summaries import SessionSummary
from raykeeper.storage.backends.backend import StoreSettings
from raykeeper.storage.backends.local import LOCAL
from raykeeper.storage.local.localstore import LocalStore
from raykeeper.storage.store import ObjectStore

HEAD = "ab" * 28
EVERYTHING_AT_ONCE = RetentionPolicy(
    default=Rule("default", ages={Outcome.SUCCEEDED: timedelta(0)}, any_age=timedelta(days=1000)),
    min_age=timedelta(0),
    reader_wait=timedelta(0),
)
"""Sessions that succeeded go as soon as they are over, and nothing else does."""


def week_policy(**changes: object) -> RetentionPolicy:
    """Failures 90 days, successes 7."""
    ages = {Outcome.FAILED: timedelta(days=90), Outcome.SUCCEEDED: timedelta(days=7)}
    given: dict[str, object] = {"default": Rule("default", ages=ages), "reader_wait": timedelta(0), **changes}
    return RetentionPolicy(**given)  # type: ignore[arg-type]


def local_folder(folder: Path) -> LocalStore:
    return LocalStore(StoreSettings(LOCAL, str(folder)))


@dataclass(frozen=True)
class SmallSession:
    """One session with a node, a segment, a table and its entries."""

    name: str
    namespace: str = "team-a"
    cluster: str = "train"
    age: timedelta = timedelta(days=8)
    """Since its end."""
    outcome: str = "ok"
    """Empty: nobody has read it."""
    has_ended: bool = True
    segments: int = 2
    started_before: timedelta = field(default=timedelta(hours=1))

    @property
    def id(self) -> SessionId:
        return SessionId(self.namespace, self.cluster, self.name)

    def objects(self, now: datetime) -> Mapping[str, bytes]:
        """By key, in the order in which they are written."""
        ended_at = now - self.age
        started_at = ended_at - self.started_before
        names = {"namespace": self.namespace, "cluster": self.cluster, "session": self.name}
        day = started_at.astimezone(UTC).date()
        found = {
            session_record_key(self.id): encode_record(
                SessionRecord(**names, started_at=started_at, recorded_at=started_at, head_node_id=HEAD)
            ),
            CatalogKey(day, self.id, "start").key: encode_record(
                CatalogStart(**names, started_at=started_at, head_node_id=HEAD)
            ),
            node_record_key(self.id, HEAD): encode_record(
                NodeRecord(node_id=HEAD, role="head", started_at=started_at, beat_at=ended_at, interval_seconds=30)
            ),
        }
        for number in range(self.segments):
            key = EventSegmentKey(self.id, HEAD, int(ended_at.timestamp() * 1e9), number).key
            found[key] = compress_lines([b'{"eventId":"x"}'])
        if self.has_ended:
            found[end_record_key(self.id, HEAD)] = encode_record(
                EndRecord(node_id=HEAD, role="head", ended_at=ended_at, reason="terminated", is_complete=True)
            )
            found[CatalogKey(day, self.id, "end").key] = encode_record(
                CatalogEnd(ended_at=ended_at, reason="terminated", head_node_id=HEAD)
            )
        if self.outcome:
            found[table_key(self.id, "tasks", "batch")] = b"parquet"
            found[CatalogKey(day, self.id, "summary").key] = encode_record(
                SessionSummary(version=6, as_of=ended_at, outcome=self.outcome)
            )
        return found

    async def put(self, store: ObjectStore, now: datetime | None = None) -> Mapping[str, bytes]:
        """Write it; the times of its objects are now."""
        objects = self.objects(now or datetime.now(UTC))
        for key, data in objects.items():
            await store.put(key, data)
        return objects

    def put_into(self, folder: Path, now: datetime | None = None) -> Mapping[str, bytes]:
        """The same as files that are as old as the session."""
        at = now or datetime.now(UTC)
        objects = self.objects(at)
        written = (at - self.age).timestamp() if self.has_ended else at.timestamp()
        for number, (key, data) in enumerate(objects.items()):
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.utime(path, (written, written + number / 1000))
        return objects


async def keys_of(store: ObjectStore) -> set[str]:
    """All keys that are not retention's own."""
    return {stat.key async for stat in store.list("") if not stat.key.startswith((RETENTION_PREFIX, "v1/clock/"))}


async def retention_keys(store: ObjectStore, folder: str = "") -> set[str]:
    return {stat.key async for stat in store.list(f"{RETENTION_PREFIX}{folder}")}
