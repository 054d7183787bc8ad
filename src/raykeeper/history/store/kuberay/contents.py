"""A KubeRay session's listing as objects of our layout: keys, sizes and times, before anything is opened. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from raykeeper.history.store.kuberay.keys import EventFile, FetchedAnswer, KubeRayPlace, LogFile, parse_object
from raykeeper.history.store.kuberay.nodes import SessionTraces, trace_session
from raykeeper.history.store.kuberay.objects import (
    Adapted,
    AdaptedAnswer,
    AdaptedEvents,
    AdaptedLog,
    AdaptedRecord,
    RawPack,
)
from raykeeper.layout.keys import (
    EventSegmentKey,
    LogPackKey,
    PolledKey,
    SealedKey,
    end_record_key,
    node_record_key,
    session_record_key,
)
from raykeeper.layout.logs import generation_name
from raykeeper.layout.polled import polled_name
from raykeeper.layout.records import Record, encode_record
from raykeeper.storage.store import ObjectStat, checked_key
from raykeeper.times import NS

_PLAIN_RATIO = 9  # Ray's events under zstd, where KubeRay stored plain lines
_SEQUENCES = 1_000_000  # six digits in a key
_HOUR_NS = 3600 * NS


@dataclass(frozen=True)
class KubeRayContents:
    """What a session has."""

    place: KubeRayPlace
    objects: dict[str, Adapted]
    """By the key of our layout, in its order."""
    traces: SessionTraces
    strange: int
    """Objects that are none of KubeRay's, or whose keys no store of ours takes."""


def adapt_session(place: KubeRayPlace, listed: Iterable[ObjectStat]) -> KubeRayContents:
    """All that lies under the session's prefix, each object under the key it has in our layout."""
    stats = [stat for stat in listed if not stat.key.endswith("/")]
    found = [(_parse(place, stat.key), stat) for stat in stats]
    known = [(item, stat) for item, stat in found if item is not None]
    traces = trace_session(place, ((item, stat.modified) for item, stat in known))
    adapted = [*_records(traces), *(_adapted(place, item, stat) for item, stat in known)]
    objects = {item.stat.key: item for item in sorted(adapted, key=lambda item: item.stat.key)}
    return KubeRayContents(place, objects, traces, strange=len(found) - len(known))


def _parse(place: KubeRayPlace, key: str) -> EventFile | LogFile | FetchedAnswer | None:
    try:
        return parse_object(checked_key(key).removeprefix(place.prefix))
    except ValueError:
        return None


def _adapted(place: KubeRayPlace, item: EventFile | LogFile | FetchedAnswer, raw: ObjectStat) -> Adapted:
    if isinstance(item, EventFile):
        key = _sealed_key(EventSegmentKey, place, item.node_id, _event_ns(item, raw.key), raw.key)
        size = raw.size if item.is_gzip else -(-raw.size // _PLAIN_RATIO)
        return AdaptedEvents(ObjectStat(key, size, raw.modified), raw, item.is_gzip)
    if isinstance(item, LogFile):
        return _adapted_log(place, item, raw)
    path_key = PolledKey(place.session, polled_name(item.path), _to_ns(raw.modified) // 1_000_000).key
    return AdaptedAnswer(ObjectStat(path_key, raw.size, raw.modified), raw, item.path)


def _adapted_log(place: KubeRayPlace, item: LogFile, raw: ObjectStat) -> AdaptedLog:
    """Another version of the file gets another key and generation, and is the newer one."""
    written_ns = _to_ns(raw.modified)
    pack = RawPack(item.path, _log_generation(raw), raw.size, written_ns)
    spread_ns = written_ns - written_ns % NS + _digest(raw.key) % NS
    key = _sealed_key(LogPackKey, place, item.node_id, spread_ns, f"{raw.key} {raw.size} {written_ns}")
    return AdaptedLog(ObjectStat(key, pack.size, raw.modified), raw, pack)


def _log_generation(raw: ObjectStat) -> str:
    """What the file is called among those that had its path."""
    return generation_name(_to_ns(raw.modified), _digest(raw.key))


def _sealed_key(kind: type[SealedKey], place: KubeRayPlace, node_id: str, sealed_ns: int, told_apart_by: str) -> str:
    return kind(place.session, node_id, sealed_ns, _digest(told_apart_by) % _SEQUENCES).key


def _event_ns(item: EventFile, key: str) -> int:
    """When the file was opened; where the name has the hour alone, some moment of it that only this file gets."""
    return item.opened_ns if item.is_exact else item.opened_ns + _digest(key) % _HOUR_NS


def _records(traces: SessionTraces) -> Iterator[AdaptedRecord]:
    session, started = traces.place.session, traces.place.started_at
    yield _record(session_record_key(session), traces.session_record(), started)
    for node in traces.node_records():
        yield _record(node_record_key(session, node.node_id), node, node.beat_at)
    for end in traces.end_records():
        yield _record(end_record_key(session, end.node_id), end, end.ended_at)


def _record(key: str, record: Record, written: datetime) -> AdaptedRecord:
    data = encode_record(record)
    return AdaptedRecord(ObjectStat(key, len(data), written), data)


def _to_ns(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())
