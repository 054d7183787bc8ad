"""Which table files hold which segments: `manifests/<n>.json`, created once each. The highest n is the truth.

A manifest is believed only about its own session, and one that cannot be read is passed over: tables may be deleted at
any time and are made anew.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

import msgspec

from raykeeper.history.ingest.batches import TABLES_VERSION, parse_range
from raykeeper.history.ingest.messages import Gap
from raykeeper.history.ingest.records import SessionRecords
from raykeeper.history.ingest.tables import ALL_TABLES, TASKS
from raykeeper.layout.keys import EventSegmentKey, SessionId, manifest_key, manifests_prefix
from raykeeper.layout.records import LATEST
from raykeeper.logs import Log
from raykeeper.storage.errors import ObjectTooLarge
from raykeeper.storage.store import ObjectStore
from raykeeper.times import to_ns

PUBLISH_BYTES = 8 << 20
"""New segments of a running session that are worth a manifest; and never less than a quarter of what has one."""
MANIFEST_LIMIT_BYTES = 64 << 20
"""A larger one is passed over; a segment takes about 100 bytes of it."""
TRIED_MANIFESTS = 8
"""Of the newest; where none of them can be read, the tables are made anew."""
FILES_LIMIT = 100_000
"""Table files that one manifest may name; ten million tasks have some 200."""
_NAME = re.compile(r"(?P<number>[0-9]{9})\.json", re.ASCII)
_FILE_NAME = re.compile(r"[0-9A-Za-z_-]{1,200}")
_LATEST_NS = to_ns(LATEST)
_LAST_NUMBER = 999_999_999
"""None sorts behind it, so it is no manifest: nothing could ever take its place."""

log = Log("raykeeper.history")


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
    facts: SessionRecords | None = None
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


@dataclass(frozen=True)
class Published:
    """What the store has of a session's tables."""

    highest: int = 0
    """Number of the last manifest, whether it can be read or not; 0 where there is none."""
    newest: NumberedManifest | None = None
    """The truth about the tables; None where there are none yet, or none that can be read."""


async def find_published(store: ObjectStore, session: SessionId, distrusted: Container[int] = ()) -> Published:
    """What is published, without those manifests whose tables turned out to be damaged."""
    sizes = {number: item.size async for item in store.list(manifests_prefix(session)) if (number := _number(item.key))}
    for number in sorted(sizes, reverse=True)[:TRIED_MANIFESTS]:
        if number not in distrusted and sizes[number] <= MANIFEST_LIMIT_BYTES:
            # One that is gone gave way to a newer one, which the next look finds.
            manifest = await _read_manifest(store, session, number)
            if manifest is not None:
                return Published(max(sizes), NumberedManifest(number, manifest))
    return Published(max(sizes, default=0))


async def _read_manifest(store: ObjectStore, session: SessionId, number: int) -> Manifest | None:
    try:
        data = await store.find(manifest_key(session, number), MANIFEST_LIMIT_BYTES)
    except ObjectTooLarge:
        return None
    return None if data is None else await asyncio.to_thread(parse_manifest, session, number, data)


async def newest_manifest(store: ObjectStore, session: SessionId) -> NumberedManifest | None:
    """The truth about a session's tables; None where there are none yet."""
    return (await find_published(store, session)).newest


async def publish_manifest(store: ObjectStore, session: SessionId, number: int, manifest: Manifest) -> bool:
    """Whether it is now manifest `number`; False when another replica was first."""
    return await store.create(manifest_key(session, number), msgspec.json.encode(manifest))


def input_name(session: SessionId, key: str) -> str:
    """A segment's key as manifests spell it."""
    return key.removeprefix(EventSegmentKey.prefix(session))


def _number(key: str) -> int:
    """Of a manifest; 0 for any other object, whoever put it there."""
    found = _NAME.fullmatch(key.rpartition("/")[2])
    number = int(found["number"]) if found else 0
    return number if number < _LAST_NUMBER else 0


def parse_manifest(session: SessionId, number: int, data: bytes) -> Manifest | None:
    """The manifest; None for one that cannot be read, or that no history server wrote for this session."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
        _check(session, manifest)
    except (ValueError, RecursionError) as exc:  # what msgspec raises is a ValueError, too
        log.warning("manifest cannot be used", session=str(session), manifest=number, cause=str(exc))
        return None
    return manifest


def _check(session: SessionId, manifest: Manifest) -> None:
    """Raises ValueError for one that no history server wrote for this session."""
    files = [(table, file) for table, files in manifest.tables.items() for file in files]
    if manifest.newer or len(files) > FILES_LIMIT:
        raise ValueError("it is none of those that are published")
    for table, file in files:
        prefix = f"{session.prefix}tables/{table}/"
        name = file.key.removeprefix(prefix).removesuffix(".parquet")
        if table not in ALL_TABLES or not file.key.startswith(prefix) or not _FILE_NAME.fullmatch(name):
            raise ValueError(f"it names {file.key!r}, which is no table of this session")
        if table == TASKS.name:
            parse_range(name)
    for ns in (manifest.as_of_ns, manifest.cluster_end_ns or 0):
        if not 0 <= ns < _LATEST_NS:
            raise ValueError(f"{ns} is no time of a session")
    if manifest.facts is not None:
        manifest.facts.check(session)
