"""Where each object of a store is: keys from facts, and facts from keys. Pure; relative to the store's root.

Every key has one owner, its only writer (docs/storage-layout.md). Hours and days are UTC and come from the time in the
key itself, so that a key follows from its facts alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Literal, Protocol, TypeVar
from urllib.parse import quote

from raykeeper.layout.names import from_segment, to_segment
from raykeeper.times import from_ns

VERSION = "v1"
CATALOG_PREFIX = f"{VERSION}/catalog/"
DATA_PREFIX = f"{VERSION}/data/"
OBSERVED_PREFIX = f"{VERSION}/observed/"
OBSERVED_RAYJOBS_PREFIX = f"{VERSION}/observed-rayjobs/"
RAYJOBS_PREFIX = f"{VERSION}/rayjobs/"
KUBE_FOLDER = "kube"
"""Beside the sessions of a cluster: what Kubernetes said about it, so no name of a session."""
UNKNOWN_SESSION = "unknown"
"""Session of what arrived before any session was known and named none."""

CatalogPart = Literal["start", "end", "summary"]


@dataclass(frozen=True, order=True)
class SessionId:
    """One Ray session of one cluster: what history is about."""

    namespace: str
    cluster: str
    session: str

    @property
    def prefix(self) -> str:
        """Of every object of the session, except those in the catalog."""
        return f"{cluster_prefix(self.namespace, self.cluster)}{to_segment(self.session)}/"

    @property
    def path(self) -> str:
        """Where a history server shows it, without the slash at the end: as an address for Ray's command line."""
        return f"/s/{'/'.join(quote(name, safe='') for name in (self.namespace, self.cluster, self.session))}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.cluster}/{self.session}"


@dataclass(frozen=True, order=True)
class ClusterId:
    """One RayCluster of Kubernetes: another one under the same name has another uid."""

    namespace: str
    cluster: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.cluster}"


def namespace_prefix(namespace: str) -> str:
    return f"{DATA_PREFIX}{to_segment(namespace)}/"


def cluster_prefix(namespace: str, cluster: str) -> str:
    return f"{namespace_prefix(namespace)}{to_segment(cluster)}/"


def session_record_key(session: SessionId) -> str:
    return f"{session.prefix}session.json"


def closed_record_key(session: SessionId) -> str:
    return f"{session.prefix}closed.json"


def nodes_prefix(session: SessionId) -> str:
    return f"{session.prefix}nodes/"


def node_record_key(session: SessionId, node_id: str) -> str:
    """The heartbeat of one node incarnation."""
    return f"{nodes_prefix(session)}{to_segment(node_id)}/node.json"


def end_record_key(session: SessionId, node_id: str) -> str:
    """The graceful end of one node incarnation."""
    return f"{nodes_prefix(session)}{to_segment(node_id)}/end.json"


@dataclass(frozen=True, order=True)
class SealedKey:
    """One immutable object a collector sealed: event segment, log pack, samples, or what it set aside."""

    folder: ClassVar[str]
    suffix: ClassVar[str]

    session: SessionId
    node_id: str
    sealed_ns: int
    """When it was sealed, in nanoseconds since 1970 by the node's clock."""
    sequence: int
    """Tells apart what was sealed at the same moment."""

    @property
    def key(self) -> str:
        name = f"{self.sealed_ns:019d}-{self.sequence:06d}{self.suffix}"
        return f"{self.hour_prefix(self.session, hour_of(self.sealed_ns))}{to_segment(self.node_id)}/{name}"

    @classmethod
    def prefix(cls, session: SessionId) -> str:
        return f"{session.prefix}{cls.folder}/"

    @classmethod
    def hour_prefix(cls, session: SessionId, hour: str) -> str:
        return f"{cls.prefix(session)}{hour}/"


class EventSegmentKey(SealedKey):
    """Events as Ray sent them, one JSON object a line."""

    folder = "events"
    suffix = ".ndjson.zst"


class LogPackKey(SealedKey):
    """Byte ranges of many log files, with an index at the end."""

    folder = "logs"
    suffix = ".pack"


class SamplesKey(SealedKey):
    """What a node used, every ten seconds; the hour of the key is that of its rows."""

    folder = "metrics"
    suffix = ".json.zst"


class RejectsKey(SealedKey):
    """What a collector could not file as an event, with the reason."""

    folder = "rejects"
    suffix = ".ndjson.zst"


@dataclass(frozen=True, order=True)
class PolledKey:
    """One answer of the head's dashboard; `name` is the path that was asked."""

    session: SessionId
    name: str
    polled_ms: int

    @property
    def key(self) -> str:
        return f"{self.name_prefix(self.session, self.name)}{self.polled_ms:013d}.json.zst"

    @staticmethod
    def prefix(session: SessionId) -> str:
        return f"{session.prefix}polled/"

    @staticmethod
    def name_prefix(session: SessionId, name: str) -> str:
        return f"{session.prefix}polled/{to_segment(name)}/"


@dataclass(frozen=True, order=True)
class KubeFactsKey:
    """Pod states and Kubernetes events of one cluster, under its uid: a head that never started has no session."""

    namespace: str
    cluster: str
    uid: str
    recorded_ns: int

    @property
    def key(self) -> str:
        return f"{self.prefix(self.namespace, self.cluster, self.uid)}{self.recorded_ns:019d}.ndjson.zst"

    @classmethod
    def prefix(cls, namespace: str, cluster: str, uid: str) -> str:
        return f"{cls.folder(namespace, cluster)}{to_segment(uid)}/"

    @staticmethod
    def folder(namespace: str, cluster: str) -> str:
        """Of all clusters that ever had that name, each under its uid."""
        return f"{cluster_prefix(namespace, cluster)}{KUBE_FOLDER}/"


@dataclass(frozen=True, order=True)
class ObservedKey:
    """A note that an observer saw this cluster alive and has not closed it: what it may close after a restart."""

    observer: str
    """Uid of the observers' Lease: of one Kubernetes cluster, and the same for all replicas and restarts."""
    namespace: str
    cluster: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.prefix(self.observer)}{'~'.join(map(to_segment, (self.namespace, self.cluster, self.uid)))}"

    @staticmethod
    def prefix(observer: str) -> str:
        return f"{OBSERVED_PREFIX}{to_segment(observer)}/"


@dataclass(frozen=True, order=True)
class RayJobId:
    """One RayJob of Kubernetes: another one under the same name has another uid."""

    namespace: str
    rayjob: str
    uid: str

    @property
    def key(self) -> str:
        """Of its record."""
        return f"{self.prefix(self.namespace, self.rayjob)}{to_segment(self.uid)}.json"

    @staticmethod
    def prefix(namespace: str, rayjob: str) -> str:
        """Of all that ever had that name."""
        return f"{RayJobId.namespace_prefix(namespace)}{to_segment(rayjob)}/"

    @staticmethod
    def namespace_prefix(namespace: str) -> str:
        """Of the records of one namespace."""
        return f"{RAYJOBS_PREFIX}{to_segment(namespace)}/jobs/"

    def cluster_key(self, cluster: str) -> str:
        """An empty object that says: this RayJob had that cluster."""
        return f"{self.cluster_prefix(self.namespace, cluster)}{'~'.join(map(to_segment, (self.rayjob, self.uid)))}"

    @staticmethod
    def cluster_prefix(namespace: str, cluster: str) -> str:
        return f"{RAYJOBS_PREFIX}{to_segment(namespace)}/clusters/{to_segment(cluster)}/"

    def note_key(self, observer: str) -> str:
        """A note that an observer saw this RayJob and has not seen its end."""
        return f"{self.notes_prefix(observer)}{'~'.join(map(to_segment, (self.namespace, self.rayjob, self.uid)))}"

    @staticmethod
    def notes_prefix(observer: str) -> str:
        return f"{OBSERVED_RAYJOBS_PREFIX}{to_segment(observer)}/"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.rayjob}"


@dataclass(frozen=True, order=True)
class CatalogKey:
    """One part of a session's entry in the list of all sessions, filed under the UTC day it started."""

    day: date
    session: SessionId
    part: CatalogPart

    @property
    def key(self) -> str:
        names = (self.session.namespace, self.session.cluster, self.session.session)
        return f"{catalog_day_prefix(self.day)}{'~'.join(map(to_segment, names))}.{self.part}.json"


def catalog_day_prefix(day: date) -> str:
    return f"{CATALOG_PREFIX}{day.isoformat()}/"


def table_key(session: SessionId, table: str, batch: str) -> str:
    return f"{session.prefix}tables/{to_segment(table)}/{to_segment(batch)}.parquet"


def manifests_prefix(session: SessionId) -> str:
    return f"{session.prefix}tables/manifests/"


def manifest_key(session: SessionId, number: int) -> str:
    return f"{manifests_prefix(session)}{number:09d}.json"


def log_indexes_prefix(session: SessionId) -> str:
    return f"{session.prefix}tables/log-indexes/"


@dataclass(frozen=True, order=True)
class LogIndexKey:
    """Copies of the indexes of many log packs of one node; named after the packs, and says how many they are."""

    session: SessionId
    node_id: str
    digest: str
    packs: int

    @property
    def key(self) -> str:
        return f"{self.prefix(self.session, self.node_id)}{self.digest}-{self.packs}.msgpack.zst"

    @staticmethod
    def prefix(session: SessionId, node_id: str) -> str:
        return f"{log_indexes_prefix(session)}{to_segment(node_id)}/"


def sample_tables_prefix(session: SessionId) -> str:
    return f"{session.prefix}tables/metrics/"


@dataclass(frozen=True, order=True)
class SampleTableKey:
    """All resource samples of one hour or day of a session as a table; named after the blocks it was made of."""

    session: SessionId
    period: str
    """An hour as keys spell it, or a day."""
    digest: str
    unreadable: int
    """Blocks that could not be read, and are missing in it."""
    level: str
    """How fine its rows are: `fine` or `coarse`."""

    @property
    def key(self) -> str:
        name = f"{self.digest}-{self.unreadable}-{self.level}.parquet"
        return f"{sample_tables_prefix(self.session)}{self.period}/{name}"


def hour_of(unix_ns: int) -> str:
    """The UTC hour as keys spell it, such as `2026-11-15T19`."""
    return from_ns(unix_ns).strftime("%Y-%m-%dT%H")


_SESSION_PATH = r"v1/data/(?P<namespace>[^/]+)/(?P<cluster>[^/]+)/(?P<session>[^/]+)/"
_SEALED = re.compile(
    _SESSION_PATH + r"(?P<folder>events|logs|rejects|metrics)/(?P<hour>\d{4}-\d\d-\d\dT\d\d)/(?P<node>[^/]+)/"
    r"(?P<ns>\d{19})-(?P<sequence>\d{6})(?P<suffix>\.ndjson\.zst|\.json\.zst|\.pack)"
)
_POLLED = re.compile(_SESSION_PATH + r"polled/(?P<name>[^/]+)/(?P<ms>\d{13})\.json\.zst")
_CATALOG = re.compile(
    r"v1/catalog/(?P<day>\d{4}-\d\d-\d\d)/(?P<namespace>[^/~]+)~(?P<cluster>[^/~]+)~(?P<session>[^/~]+)"
    r"\.(?P<part>start|end|summary)\.json"
)
_KUBE_FACTS = re.compile(
    r"v1/data/(?P<namespace>[^/]+)/(?P<cluster>[^/]+)/kube/(?P<uid>[^/]+)/(?P<ns>\d{19})\.ndjson\.zst"
)
_OBSERVED = re.compile(r"v1/observed/(?P<observer>[^/]+)/(?P<namespace>[^/~]+)~(?P<cluster>[^/~]+)~(?P<uid>[^/~]+)")
_RAYJOB = re.compile(r"v1/rayjobs/(?P<namespace>[^/]+)/jobs/(?P<rayjob>[^/]+)/(?P<uid>[^/]+)\.json")
_RAYJOB_OF_CLUSTER = re.compile(
    r"v1/rayjobs/(?P<namespace>[^/]+)/clusters/(?P<cluster>[^/]+)/(?P<rayjob>[^/~]+)~(?P<uid>[^/~]+)"
)
_RAYJOB_NOTE = re.compile(
    r"v1/observed-rayjobs/(?P<observer>[^/]+)/(?P<namespace>[^/~]+)~(?P<rayjob>[^/~]+)~(?P<uid>[^/~]+)"
)
_LOG_INDEX = re.compile(
    _SESSION_PATH + r"tables/log-indexes/(?P<node>[^/]+)/(?P<digest>[0-9a-f]{32})-(?P<packs>\d{1,9})\.msgpack\.zst"
)
_SAMPLE_TABLE = re.compile(
    _SESSION_PATH + r"tables/metrics/(?P<period>\d{4}-\d\d-\d\d(?:T\d\d)?)/"
    r"(?P<digest>[0-9a-f]{32})-(?P<unreadable>\d{1,9})-(?P<level>fine|coarse)\.parquet"
)
_SEALED_KINDS: dict[tuple[str, str], type[SealedKey]] = {
    (kind.folder, kind.suffix): kind for kind in (EventSegmentKey, LogPackKey, RejectsKey, SamplesKey)
}


def parse_sealed_key(key: str) -> SealedKey | None:
    """The facts in the key of an event segment, log pack, samples or rejects; None for any other key."""
    found = _SEALED.fullmatch(key)
    kind = found and _SEALED_KINDS.get((found["folder"], found["suffix"]))
    if not found or not kind:
        return None
    return _confirmed(
        key, lambda: kind(_session(found), from_segment(found["node"]), int(found["ns"]), int(found["sequence"]))
    )


def parse_polled_key(key: str) -> PolledKey | None:
    """The facts in the key of a polled answer; None for any other key."""
    if not (found := _POLLED.fullmatch(key)):
        return None
    return _confirmed(key, lambda: PolledKey(_session(found), from_segment(found["name"]), int(found["ms"])))


def parse_catalog_key(key: str) -> CatalogKey | None:
    """The facts in the key of a catalog entry; None for any other key."""
    if not (found := _CATALOG.fullmatch(key)):
        return None
    part: CatalogPart = found["part"]  # type: ignore[assignment]  # the pattern has these three alone
    return _confirmed(key, lambda: CatalogKey(date.fromisoformat(found["day"]), _session(found), part))


def parse_kube_facts_key(key: str) -> KubeFactsKey | None:
    """The facts in the key of a segment of Kubernetes facts; None for any other key."""
    if not (found := _KUBE_FACTS.fullmatch(key)):
        return None
    return _confirmed(
        key,
        lambda: KubeFactsKey(
            from_segment(found["namespace"]),
            from_segment(found["cluster"]),
            from_segment(found["uid"]),
            int(found["ns"]),
        ),
    )


def parse_observed_key(key: str) -> ObservedKey | None:
    """The facts in the key of a note that a cluster was seen alive; None for any other key."""
    if not (found := _OBSERVED.fullmatch(key)):
        return None
    names = ("observer", "namespace", "cluster", "uid")
    return _confirmed(key, lambda: ObservedKey(*(from_segment(found[name]) for name in names)))


def parse_rayjob_key(key: str) -> RayJobId | None:
    """The RayJob that the key of a record, of a mark under a cluster or of a note is about; None for any other key."""
    found = _RAYJOB.fullmatch(key) or _RAYJOB_OF_CLUSTER.fullmatch(key) or _RAYJOB_NOTE.fullmatch(key)
    if not found:
        return None
    try:
        return RayJobId(*(from_segment(found[name]) for name in ("namespace", "rayjob", "uid")))
    except ValueError:
        return None


def parse_log_index_key(key: str) -> LogIndexKey | None:
    """The facts in the key of collected log indexes; None for any other key."""
    if not (found := _LOG_INDEX.fullmatch(key)):
        return None
    return _confirmed(
        key, lambda: LogIndexKey(_session(found), from_segment(found["node"]), found["digest"], int(found["packs"]))
    )


def parse_sample_table_key(key: str) -> SampleTableKey | None:
    """The facts in the key of a table of resource samples; None for any other key."""
    if not (found := _SAMPLE_TABLE.fullmatch(key)):
        return None
    facts = (found["period"], found["digest"], int(found["unreadable"]), found["level"])
    return _confirmed(key, lambda: SampleTableKey(_session(found), *facts))


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


_K = TypeVar("_K", bound=_Keyed)


def _confirmed(key: str, parse: Callable[[], _K]) -> _K | None:
    """What the key says, if that has exactly this key: nothing we did not write is taken for ours."""
    try:
        facts = parse()
    except ValueError:
        return None
    return facts if facts.key == key else None


def _session(found: re.Match[str]) -> SessionId:
    return SessionId(*(from_segment(found[part]) for part in ("namespace", "cluster", "session")))
