"""History that a RayJob or RayService asks for: the annotation reaches its clusters, and its status says what keeps it
from being kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from raykeeper.api.meta import ObjectKey
from raykeeper.api.raycluster import HISTORY_COLLECTED, RAY_CLUSTERS, RayCluster, RayClusterSpec
from raykeeper.api.rayjob import RayJobStatus
from raykeeper.api.rayservice import RayServiceStatuses
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import ApiError
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.logs import Log
from raykeeper.operator.shared.conditions import Finding, updated
from raykeeper.operator.shared.history import ANNOTATIONS, NOT_CONFIGURED, History
from raykeeper.operator.shared.owner import Owner

S = TypeVar("S", RayJobStatus, RayServiceStatuses)
OURS: Final = frozenset({HISTORY_COLLECTED})
log = Log("raykeeper.operator.history")


class OwnersHistory:
    """For one controller."""

    def __init__(self, kube: Kube, recorder: EventRecorder, history: History) -> None:
        self._kube = kube
        self._recorder = recorder
        self._history = history

    async def pass_on(self, owner: Owner, clusters: Iterable[RayCluster]) -> None:
        """Give those that the owner made before the annotation it has now. Their new pods follow it; that it is taken
        away reaches only clusters made from then on, since one may have been annotated by itself.
        """
        said = {name: owner.annotations[name] for name in ANNOTATIONS if name in owner.annotations}
        for meta in (cluster.metadata for cluster in clusters):
            is_own = any(one.uid == owner.uid for one in meta.owner_references)
            if not is_own or said.items() <= meta.annotations.items() or meta.deletion_timestamp is not None:
                continue
            patch = {"metadata": {"uid": meta.uid, "annotations": said}}
            try:
                await self._kube.merge_patch(RAY_CLUSTERS, ObjectKey(meta.namespace, meta.name), patch)
            except (ApiError, Unavailable) as error:  # the history is never worth a failure of its owner
                log.warning("annotation not passed on", owner=str(owner), cluster=meta.name, error=str(error))

    def told(self, owner: Owner, spec: RayClusterSpec | None, status: S, generation: int, now: datetime) -> S:
        """The status with what keeps the history from being kept, which is a Warning too."""
        problem = self._history.problem_of(spec, owner.annotations) if spec is not None else ""
        findings = []
        if problem:
            self._recorder.warning(owner.ref(), NOT_CONFIGURED, problem, action="Validate")
            findings = [Finding(HISTORY_COLLECTED, "False", NOT_CONFIGURED, problem)]
        conditions = updated(status.conditions, findings, OURS, generation, now)
        return msgspec.structs.replace(status, conditions=conditions)
