"""What Kubernetes said about a cluster: its pods' states, the Events about it, its beginning and its end.

A segment is lines of JSON under zstd, each with its `kind`; readers skip kinds and fields they do not know. Of a pod's
spec only node and images are kept: values of environment variables are never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from raykeeper.layout.records import check_times
from raykeeper.layout.segments import TornSegment, compress_lines, read_lines

ContainerState = Literal["waiting", "running", "terminated"]


class ContainerFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container of a pod, as the kubelet told it."""

    name: str
    image: str = ""
    is_init: bool = False
    """One of `initContainers`; a sidecar that restarts is one too."""
    state: ContainerState = "waiting"
    reason: str = ""
    """Of the state: `ImagePullBackOff`, `OOMKilled`, `Error`, `Completed`."""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    last_reason: str = ""
    """How it ended the time before, where it was started again."""
    last_message: str = ""
    last_exit_code: int | None = None
    last_signal: int | None = None
    last_started_at: datetime | None = None
    last_finished_at: datetime | None = None


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """One line of a segment."""

    at: datetime
    """When the observer saw it; of an Event, when it happened last."""


class PodFact(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="pod"):
    """A Ray pod from this moment on, until the next fact about it."""

    uid: str
    name: str
    group: str = ""
    """Worker group, or `headgroup`."""
    node_type: str = ""
    """`head` or `worker`."""
    phase: str = ""
    """`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""
    reason: str = ""
    """Why the pod is in that phase: `Evicted`, `NodeLost`."""
    message: str = ""
    unschedulable: str = ""
    """What the scheduler says while it finds no node: `0/4 nodes are available: 4 Insufficient cpu.`"""
    disruption: str = ""
    """Why Kubernetes ends the pod: `PreemptionByScheduler`, `DeletionByTaintManager`, `EvictionByEvictionAPI`."""
    disruption_message: str = ""
    node: str = ""
    """Name of the Kubernetes node."""
    image: str = ""
    """Of the container that runs Ray."""
    host_ip: str = ""
    pod_ip: str = ""
    ray_node_id: str = ""
    """Where known. Ray's own records say which node ran in a pod (`node.json`: `pod`)."""
    created_at: datetime | None = None
    deletion_requested_at: datetime | None = None
    """When it is to be gone at the latest, once somebody asked for its deletion (`deletionTimestamp`)."""
    deleted: bool = False
    """It is not there any more; the rest is its last known state."""
    containers: tuple[ContainerFact, ...] = ()


class EventFact(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="event"):
    """A Kubernetes Event. One that happens again has the same `uid` and a higher `count`."""

    uid: str
    first_at: datetime | None = None
    count: int = 1
    type: str = ""
    """`Normal` or `Warning`."""
    reason: str = ""
    message: str = ""
    about_kind: str = ""
    about_name: str = ""
    about_uid: str = ""
    component: str = ""
    """Who says it: `kubelet`, `default-scheduler`, `raycluster-controller`."""
    host: str = ""
    """The Kubernetes node it says it from, if it is a kubelet."""


class ClusterFact(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="cluster"):
    """The RayCluster itself."""

    uid: str
    name: str
    owner_kind: str = ""
    """`RayJob` or `RayService` where one made the cluster."""
    owner_name: str = ""
    owner_uid: str = ""
    state: str = ""
    """`ready`, `suspended`, `failed` or empty, as its status says."""
    reason: str = ""
    suspend: bool = False
    """Somebody asked for it to be without pods for a while."""
    created_at: datetime | None = None
    deletion_requested_at: datetime | None = None
    deleted: bool = False
    """It is not there any more."""


class LossFact(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="loss"):
    """What was seen and not kept, because the bucket could not be reached for long or a pod changed too often."""

    pods: int = 0
    """States of pods between the one before and the next that is recorded."""
    events: int = 0


KubeFact = PodFact | EventFact | ClusterFact | LossFact


class _Kind(msgspec.Struct):
    """Which kind of fact a line is, all that is looked at where the rest cannot be read."""

    kind: str


_KINDS = frozenset({"pod", "event", "cluster", "loss"})
_decoder = msgspec.json.Decoder(KubeFact)
_kind_decoder = msgspec.json.Decoder(_Kind)


@dataclass(frozen=True)
class DecodedFacts:
    """What could be read of a segment."""

    facts: tuple[KubeFact, ...]
    unreadable: int = 0
    """Lines that are damaged, and the rest of a segment that is torn, as one. Lines of a later version do not count."""
    text_bytes: int = 0
    """Of the lines that were read."""


def says_the_same(before: KubeFact | None, after: KubeFact) -> bool:
    """Whether only the time of looking differs."""
    return before is not None and msgspec.structs.replace(before, at=after.at) == after


def encode_facts(facts: Iterable[KubeFact]) -> bytes:
    """A segment's bytes."""
    return compress_lines(msgspec.json.encode(fact) for fact in facts)


OBJECT_LIMIT_BYTES = 4 << 20
"""Of a segment; the observer's largest is below 1 MB."""
LINES_LIMIT = 10_000
"""Of a segment; the observer writes 500. What is beyond is not read, and counts as one unreadable line."""
TEXT_LIMIT_BYTES = 32 << 20
"""The same for its text."""


def decode_facts(data: bytes) -> DecodedFacts:
    """Every fact of a segment that can be read, in its order."""
    facts, unreadable, text_bytes = list[KubeFact](), 0, 0
    try:
        for number, line in enumerate(read_lines(data)):
            text_bytes += len(line)
            if number == LINES_LIMIT or text_bytes > TEXT_LIMIT_BYTES:
                unreadable += 1
                break
            try:
                fact = _decoder.decode(line)
                check_times(fact)
                facts.append(fact)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                unreadable += not _is_of_later_version(line)
    except TornSegment:
        unreadable += 1
    return DecodedFacts(tuple(facts), unreadable, text_bytes)


def _is_of_later_version(line: bytes) -> bool:
    try:
        return _kind_decoder.decode(line).kind not in _KINDS
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
