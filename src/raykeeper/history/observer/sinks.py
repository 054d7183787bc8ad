"""Where the watches put what they read. Nothing but names and uids is kept here: facts are made of objects at once."""

from __future__ import annotations

import msgspec

from raykeeper.api.meta import Object, ObjectKey
from raykeeper.history.observer.clusterfacts import cluster_id
from raykeeper.history.observer.eventfacts import KubeEvent
from raykeeper.history.observer.recording import Recorder
from raykeeper.layout.keys import ClusterId
from raykeeper.logs import Log

log = Log("raykeeper.history.observer")


class ClusterSink:
    """RayClusters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[ObjectKey, ClusterId] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return _of_namespace(self._known, namespace)

    def put(self, item: Object) -> None:
        id_, known = cluster_id(item), self._known.get(item.key)
        if known is not None and known != id_:
            self._recorder.cluster_gone(known)  # deleted and made again under the same name while we looked away
        self._known[item.key] = id_
        try:
            self._recorder.cluster_seen(item)
        except msgspec.ValidationError as exc:
            _tell("RayCluster", item, exc)

    def remove(self, key: ObjectKey) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._recorder.cluster_gone(known)


class PodSink:
    """Pods of Ray clusters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[ObjectKey, str] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return _of_namespace(self._known, namespace)

    def put(self, item: Object) -> None:
        uid, known = item.metadata.uid, self._known.get(item.key)
        if known is not None and known != uid:
            self._recorder.pod_gone(known)
        self._known[item.key] = uid
        try:
            self._recorder.pod_seen(item)
        except msgspec.ValidationError as exc:
            _tell("pod", item, exc)

    def remove(self, key: ObjectKey) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._recorder.pod_gone(known)


class EventSink:
    """Events. Their end means nothing: the API server forgets each after an hour."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def keys(self, _namespace: str | None) -> list[ObjectKey]:
        return []

    def put(self, item: KubeEvent) -> None:
        self._recorder.event_seen(item)

    def remove(self, _key: ObjectKey) -> None:
        return


def _of_namespace(known: dict[ObjectKey, ClusterId] | dict[ObjectKey, str], namespace: str | None) -> list[ObjectKey]:
    return [key for key in known if namespace is None or key.namespace == namespace]


def _tell(kind: str, item: Object, failure: msgspec.ValidationError) -> None:
    """A shape that the API server does not let pass today."""
    log.warning("object is not of the shape it should have", kind=kind, object=str(item.key), cause=str(failure))
