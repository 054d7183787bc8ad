"""Which table files hold which segments: `manifests/<n>.json`, created once each. The highest n is the truth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from raykeeper.history.ingest.batches import TABLES_VERSION
from raykeeper.history.ingest.facts import Facts
from raykeeper.history.ingest.jobs import Gap
from raykeeper.layout.keys import EventSegmentKey, SessionId, manifest_key, manifests_prefix
from raykeeper.storage.errors import ObjectMissing
from raykeeper.storage.store import ObjectStore

PUBLISH_BYTES = 8 << 20
"""New segments of a running session that are worth a manifest; and never less than a quarter of what has one."""


class TableFile(msgspec.Struct, frozen=True):
    key: str
    size: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a session's tables."""

    version: str = TABLES_VERSION
    """Of the rules by which the tables were made."""
    generation: str
    inputs: tuple[str, ...]
    """Keys of the segments that are in the tables, behind the session's prefix of events; sorted."""
    input_bytes: int
    tables: dict[str, tuple[TableFile, ...]]
    tasks: int
    as_of_ns: int
    """When the newest segment was sealed."""
    is_final: bool
    newer: dict[str, tuple[TableFile, ...]] = {}
    """Rows of tasks to be read instead of those in `tables`, while a session is tailed; never published."""
    published_bytes: int = 0
    """Of the inputs that the newest published manifest had when this one was made."""
    folded_bytes: int = 0
    """Of the inputs whose tasks are in `tables`."""
    cluster_end_ns: int | None = None
    gaps: tuple[Gap, ...] = ()
    facts: Facts | None = None
    """What the small records said, once they cannot change any more: a final session opens without reading them."""

    def files(self) -> Iterator[TableFile]:
        return (file for files in self.tables.values() for file in files)


class NumberedManifest(msgspec.Struct, frozen=True):
    number: int
    manifest: Manifest


def is_worth_publishing(manifest: Manifest, new_bytes: int = 0) -> bool:
    """Whether other replicas gain by tables of this and so many more bytes: a good part is not published yet."""
    unpublished = manifest.input_bytes + new_bytes - manifest.published_bytes
    return unpublished >= max(PUBLISH_BYTES, manifest.published_bytes // 4)


async def newest_manifest(store: ObjectStore, session: SessionId) -> NumberedManifest | None:
    """The truth about a session's tables; None where there are none yet."""
    while True:
        numbers = [number async for number in _numbers(store, session)]
        if not numbers:
            return None
        try:
            data = await store.get(manifest_key(session, numbers[-1]))
        except ObjectMissing:
            continue  # a newer one took its place since the list was made
        return NumberedManifest(numbers[-1], msgspec.json.decode(data, type=Manifest))


async def publish_manifest(store: ObjectStore, session: SessionId, number: int, manifest: Manifest) -> bool:
    """Whether it is now manifest `number`; False when another replica was first."""
    return await store.create(manifest_key(session, number), msgspec.json.encode(manifest))


def input_name(session: SessionId, key: str) -> str:
    """A segment's key as manifests spell it."""
    return key.removeprefix(EventSegmentKey.prefix(session))


async def _numbers(store: ObjectStore, session: SessionId) -> AsyncIterator[int]:
    prefix = manifests_prefix(session)
    async for item in store.list(prefix):
        name = item.key.removeprefix(prefix).removesuffix(".json")
        if name.isdigit():
            yield int(name)
