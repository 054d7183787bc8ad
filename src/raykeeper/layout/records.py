"""The small JSON objects of a session: its facts, its nodes' heartbeats and ends, its catalog entry.

Readers ignore fields they do not know, and every field that came later has a default: a store outlives versions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec

Role = Literal["head", "worker"]

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Of every time in a record. At the ends of the calendar a time cannot be told in another zone."""


KIB, MIB = 1 << 10, 1 << 20
MAX_COUNT = (1 << 63) - 1
"""Of anything that a record counts: sizes of sparse files add up to more than any disk has."""
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Seconds = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
"""Thirty years: with a longer time nothing can be reckoned."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Common base: JSON with snake_case names; what equals its default is left out."""

    limit_bytes: ClassVar[int] = 8 * KIB
    """Of its object: a larger one is none of ours. Lists hold thousands of them in memory."""


class SessionRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`session.json`: what is known at the start. Written once; the first head incarnation wins."""

    layout: str = "v1"
    namespace: str
    cluster: str
    session: str
    started_at: datetime
    recorded_at: datetime
    head_node_id: str = ""
    cluster_uid: str = ""
    owner_kind: str = ""
    """`RayJob` or `RayService` where one made the cluster."""
    owner_name: str = ""
    ray_version: str = ""
    ray_commit: str = ""
    python_version: str = ""
    collector_version: str = ""


class Delivery(Record, frozen=True, kw_only=True, omit_defaults=True):
    """How far a node's collector is: what waits, what was refused, given up or lost."""

    events_accepted: Count = 0
    events_set_aside: Count = 0
    batches_refused: Count = 0
    """Answered 503 because the disk budget was used up."""
    unsent_event_bytes: Count = 0
    unsent_log_bytes: Count = 0
    oldest_unsent_seconds: Seconds = 0.0
    lost_log_bytes: Count = 0
    """Of deleted files that could not be kept open any longer."""
    ray_dropped_events: Count = 0
    """By Ray's own count, before they reached the collector."""
    upload_errors: Count = 0


class NodeRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`node.json`: heartbeat of one node incarnation, overwritten by its own collector."""

    limit_bytes: ClassVar[int] = 16 * KIB
    """Its samples take up to 11 KB."""
    node_id: str
    role: Role
    started_at: datetime
    beat_at: datetime
    interval_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)]
    """A node whose heartbeat is older than three of these is silent."""
    pod: str = ""
    pod_ip: str = ""
    hostname: str = ""
    clock_offset_seconds: Seconds | None = None
    """The node's clock minus the store's."""
    raylet_gone_at: datetime | None = None
    """When the node's raylet ended, by the node's clock. It is the node's last heartbeat: the collector may live on."""
    was_raylet_killed: bool = False
    """Nobody had asked the raylet to end: it was killed, or aborted."""
    delivery: Delivery = Delivery()
    samples: bytes = b""
    """Rows of resource samples that no block in the store holds yet, as such a block (`layout/samples.py`): a node that
    is lost with its disk is known to its last heartbeat."""


class MissingLog(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes of one file that did not reach the store."""

    path: str
    offset: Count
    length: Count


class EndRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`end.json`: the end of one node incarnation, once all that is known of it was sent."""

    limit_bytes: ClassVar[int] = 8 * MIB
    """A thousand paths of files that are missing, escaped."""
    node_id: str
    role: Role
    ended_at: datetime
    """When its raylet ended; where that is not known, when its collector did."""
    reason: str
    is_complete: bool
    """Nothing this node's collector had was left behind."""
    missing_logs: tuple[MissingLog, ...] = ()
    missing_log_bytes: Count = 0
    missing_event_bytes: Count = 0
    delivery: Delivery = Delivery()


CLUSTER_DELETED = "cluster deleted"
CLUSTER_SUSPENDED = "cluster suspended"
HEAD_LOST = "head lost"
"""Reasons to close a session. Nobody wanted the last one: such a session crashed."""
RAYLET_KILLED = "raylet killed"
"""Reason of a node's end: its raylet ended and nobody had asked it to. The session of such a head crashed."""
CRASH_REASONS = frozenset({HEAD_LOST, RAYLET_KILLED})


class ClosedRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`closed.json`: the Kubernetes observer saw the end of a cluster it had seen alive."""

    closed_at: datetime
    reason: str
    cluster_uid: str


class CatalogStart(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`.start.json` in the catalog: what a list of sessions shows of a running one."""

    namespace: str
    cluster: str
    session: str
    started_at: datetime
    head_node_id: str = ""
    """The newest head incarnation. With GCS fault tolerance there may be several in one session."""
    cluster_uid: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    ray_version: str = ""


class CatalogEnd(Record, frozen=True, kw_only=True, omit_defaults=True):
    """`.end.json` in the catalog: a head ended. It is the session's end if no other head began since."""

    ended_at: datetime
    reason: str
    is_complete: bool = True
    head_node_id: str = ""
    """Which incarnation ended: if `.start.json` names another by now, the session goes on."""


class PolledAnswer(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of the head's dashboard as it was given."""

    path: str
    polled_at: datetime
    status: int
    body: msgspec.Raw = msgspec.Raw(b"null")
    """The JSON answer byte for byte; a JSON string where the answer was not JSON."""
    is_path_guessed: bool = False
    """It was KubeRay's, whose names do not tell a slash at the end, nor `__` from a slash."""


class Reject(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a rejects object: what could not be filed as an event."""

    reason: str
    received_at: datetime
    text: str
    """As it came; bytes that are not UTF-8 are replaced."""
    is_cut: bool = False
    """Only the first part was kept."""


R = TypeVar("R", bound=Record)


def encode_record(record: Record) -> bytes:
    """JSON in one line."""
    return msgspec.json.encode(record)


def decode_record(data: bytes, kind: type[R]) -> R:
    """The record, whatever later versions added to it. Raises msgspec.ValidationError."""
    try:
        record = msgspec.json.decode(data, type=kind)
    except (UnicodeDecodeError, RecursionError) as exc:
        raise msgspec.ValidationError(str(exc)) from exc
    check_times(record)
    return record


def check_times(value: object) -> None:
    """Raises msgspec.ValidationError for a record that names a time, however deep inside, at which no clock can be."""
    if isinstance(value, datetime):
        if not is_usable_time(value):
            raise msgspec.ValidationError(f"{value.isoformat()} is no time of a session")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            check_times(getattr(value, name))
    elif isinstance(value, tuple):
        for inner in value:
            check_times(inner)


def is_usable_time(time: datetime) -> bool:
    """Whether a time from outside lies where clocks can be: nothing that is done with it can fail."""
    return time.tzinfo is not None and EARLIEST <= time < LATEST
