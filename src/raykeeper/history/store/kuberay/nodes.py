"""What a node left in KubeRay's layout, and the records that its collector would have written in ours. Pure.

KubeRay stores neither heartbeats nor ends. It uploads a node's logs when the node ends gracefully, and nothing
else tells that; it opens a new event file every five minutes, and nothing else tells that a node lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from raykeeper.history.store.kuberay.keys import EventFile, FetchedAnswer, KubeRayPlace, LogFile
from raykeeper.history.store.session_state import SILENT_BEATS
from raykeeper.layout.records import EndRecord, NodeRecord, Role, SessionRecord
from raykeeper.times import from_ns

EVENT_FILE_SECONDS = 300.0
"""Age at which KubeRay's collector closes an event file and uploads it; a node is silent after three of these."""
END_REASON = "KubeRay's collector uploaded the node's logs, which it does at the end"
_GCS_LOG = "gcs_server."
_ROTATED = ".rotated."
"""In names of logs that KubeRay 1.7.1 uploads while the node still runs."""
_NEVER = datetime.min.replace(tzinfo=UTC)

Found = tuple[EventFile | LogFile | FetchedAnswer, datetime]
"""What an object is, and when it was written."""


@dataclass
class NodeTraces:
    """One node, by its objects."""

    node_id: str
    first_event_ns: int | None = None
    last_seen: datetime = _NEVER
    has_ended: bool = False
    """Its logs were uploaded, as at an end."""
    has_gcs_log: bool = False

    def add(self, found: EventFile | LogFile, written: datetime) -> None:
        self.last_seen = max(self.last_seen, written)
        if isinstance(found, EventFile):
            self.first_event_ns = min(self.first_event_ns or found.opened_ns, found.opened_ns)
        elif _ROTATED not in found.path:
            self.has_ended = True
            self.has_gcs_log |= found.path.startswith(_GCS_LOG)


@dataclass(frozen=True)
class SessionTraces:
    """All nodes of a session, and who of them is the head."""

    place: KubeRayPlace
    nodes: Mapping[str, NodeTraces]
    polled_at: datetime | None
    """When the head's dashboard was asked last."""
    heads: frozenset[str]

    def node_records(self) -> Iterator[NodeRecord]:
        for node in self.nodes.values():
            yield NodeRecord(
                node_id=node.node_id,
                role=self._role(node),
                started_at=self._started_at(node),
                beat_at=self._beat_at(node),
                interval_seconds=EVENT_FILE_SECONDS,
            )

    def end_records(self) -> Iterator[EndRecord]:
        for node in self.nodes.values():
            if node.has_ended:
                yield EndRecord(
                    node_id=node.node_id,
                    role=self._role(node),
                    ended_at=self._beat_at(node),
                    reason=END_REASON,
                    is_complete=True,
                )

    def session_record(self) -> SessionRecord:
        session, newest = self.place.session, self._newest_head()
        return SessionRecord(
            namespace=session.namespace,
            cluster=session.cluster,
            session=session.session,
            started_at=self.place.started_at,
            recorded_at=self.place.started_at,
            head_node_id=newest.node_id if newest else "",
            owner_kind=self.place.owner_kind,
            owner_name=self.place.owner,
        )

    def last_seen(self) -> datetime:
        """The last sign of life of any node, or the start where there is none."""
        return max([node.last_seen for node in self.nodes.values()], default=self.place.started_at)

    def is_running(self, now: datetime) -> bool:
        """Whether the newest head did not end and was heard of lately."""
        head = self._newest_head()
        if head is None or head.has_ended:
            return False
        return now - self._beat_at(head) < timedelta(seconds=SILENT_BEATS * EVENT_FILE_SECONDS)

    def has_ended(self) -> bool:
        """Whether the newest head ended with a word; without one, it was lost."""
        head = self._newest_head()
        return head is not None and head.has_ended

    def ended_at(self) -> datetime:
        """When the newest head gave its last sign of life."""
        head = self._newest_head()
        return self._beat_at(head) if head else self.last_seen()

    def _role(self, node: NodeTraces) -> Role:
        return "head" if node.node_id in self.heads else "worker"

    def _newest_head(self) -> NodeTraces | None:
        heads = [self.nodes[node_id] for node_id in self.heads]
        return max(heads, key=lambda node: node.last_seen, default=None)

    def _beat_at(self, node: NodeTraces) -> datetime:
        """The last sign of life: any object of the node's, and what was asked of the newest head."""
        if self.polled_at is None or node is not self._newest_head():
            return node.last_seen
        return max(node.last_seen, self.polled_at)

    def _started_at(self, node: NodeTraces) -> datetime:
        if node.first_event_ns is None:
            return self.place.started_at
        return from_ns(node.first_event_ns)


def trace_session(place: KubeRayPlace, found: Iterable[Found]) -> SessionTraces:
    """Every node that left an object, the head among them."""
    nodes: dict[str, NodeTraces] = {}
    polled_at: datetime | None = None
    for item, written in found:
        if isinstance(item, FetchedAnswer):
            polled_at = max(polled_at or written, written)
        else:
            nodes.setdefault(item.node_id, NodeTraces(item.node_id)).add(item, written)
    return SessionTraces(place, nodes, polled_at, _find_heads(nodes))


def _find_heads(nodes: Mapping[str, NodeTraces]) -> frozenset[str]:
    """Those that ran the GCS; while no logs are there, the node that had something to tell first."""
    heads = frozenset(node.node_id for node in nodes.values() if node.has_gcs_log)
    telling = [(node.first_event_ns, node.node_id) for node in nodes.values() if node.first_event_ns is not None]
    return heads or (frozenset([min(telling)[1]]) if telling else frozenset())
