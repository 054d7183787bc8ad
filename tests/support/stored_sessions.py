"""What a store that is a local folder holds of one session, read by the layout alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    LogPackKey,
    SamplesKey,
    SealedKey,
    SessionId,
    end_record_key,
    node_record_key,
    parse_catalog_key,
    parse_polled_key,
    parse_sealed_key,
    session_record_key,
)
from raykeeper.layout.logs import StoredLog, logs_of_packs, newest_by_path, read_log
from raykeeper.layout.polled import decode_polled
from raykeeper.layout.records import CatalogStart, EndRecord, NodeRecord, R, SessionRecord, decode_record
from raykeeper.layout.samples import FIELDS, STEP_SECONDS, SampleBlock, decode_block
from raykeeper.layout.segments import read_lines


@dataclass(frozen=True)
class StoredSession:
    """One session below one folder."""

    store: Path
    id: SessionId

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """Every stored event, repeats too, by the node it is filed under."""
        found: dict[str, list[dict[str, Any]]] = {}
        for facts, data in self._sealed(EventSegmentKey):
            found.setdefault(facts.node_id, []).extend(map(json.loads, read_lines(data)))
        return found

    def event_ids(self) -> Counter[str]:
        """How often each event is stored."""
        return Counter(event["eventId"] for events in self.events().values() for event in events)

    def logs(self, node_id: str, wanted: Container[str] | None = None) -> dict[str, bytes]:
        """The newest file of each name that is wanted, from its first byte to its last; a hole fails the test."""
        packs = {facts.key: data for facts, data in self._sealed(LogPackKey) if facts.node_id == node_id}
        stored, fetch = logs_of_packs(packs)
        newest = newest_by_path(stored.values())
        return {path: _whole(log, fetch) for path, log in newest.items() if wanted is None or path in wanted}

    def log_nodes(self) -> set[str]:
        return {facts.node_id for facts, _ in self._sealed(LogPackKey)}

    def polled(self, name: str) -> list[Any]:
        """Every answer to that path, oldest first."""
        keys = [facts for key in self._keys() if (facts := parse_polled_key(key)) and facts.session == self.id]
        named = sorted((facts for facts in keys if facts.name == name), key=lambda facts: facts.polled_ms)
        return [json.loads(bytes(decode_polled(self._read(facts.key)).body)) for facts in named]

    def sealed_samples(self, node_id: str) -> dict[int, dict[str, Any]]:
        """Rows of resource samples that are in blocks, by time."""
        found: dict[int, dict[str, Any]] = {}
        for facts, data in self._sealed(SamplesKey):
            if facts.node_id == node_id:
                found |= _rows(decode_block(data))
        return found

    def samples(self, node_id: str) -> dict[int, dict[str, Any]]:
        """All rows of resource samples, also those that only the heartbeat has."""
        node = self.node(node_id)
        return self.sealed_samples(node_id) | (_rows(decode_block(node.samples)) if node and node.samples else {})

    def record(self) -> SessionRecord | None:
        return self._record(session_record_key(self.id), SessionRecord)

    def node(self, node_id: str) -> NodeRecord | None:
        return self._record(node_record_key(self.id, node_id), NodeRecord)

    def end(self, node_id: str) -> EndRecord | None:
        return self._record(end_record_key(self.id, node_id), EndRecord)

    def start(self) -> CatalogStart | None:
        """What a list of sessions shows of it."""
        if (record := self.record()) is None:
            return None
        return self._record(CatalogKey(record.started_at.date(), self.id, "start").key, CatalogStart)

    def catalog(self) -> set[str]:
        """Which parts of its catalog entry are there."""
        entries = [facts for key in self._keys() if (facts := parse_catalog_key(key))]
        return {facts.part for facts in entries if facts.session == self.id}

    def _record(self, key: str, kind: type[R]) -> R | None:
        return decode_record(self._read(key), kind) if (self.store / key).exists() else None

    def _sealed(self, kind: type[SealedKey]) -> list[tuple[SealedKey, bytes]]:
        keys = [facts for key in self._keys() if isinstance(facts := parse_sealed_key(key), kind)]
        mine = sorted(facts for facts in keys if facts.session == self.id)
        return [(facts, self._read(facts.key)) for facts in mine]

    def _keys(self) -> list[str]:
        return [path.relative_to(self.store).as_posix() for path in self.store.rglob("*") if path.is_file()]

    def _read(self, key: str) -> bytes:
        return (self.store / key).read_bytes()


def _rows(block: SampleBlock) -> dict[int, dict[str, Any]]:
    """By time; without those in which nothing is known."""
    columns = {name: block.values(getattr(block, name)) for name in FIELDS}
    rows = {
        block.start + STEP_SECONDS * row: {name: values[row] for name, values in columns.items()}
        for row in range(block.rows)
    }
    return {at: row for at, row in rows.items() if any(value is not None for value in row.values())}


def _whole(log: StoredLog, fetch: Any) -> bytes:
    data, holes = read_log(log, 0, log.size, fetch)
    assert holes == [], f"{log.path} lacks {holes}"
    return data
