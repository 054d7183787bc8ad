"""KAI: its own pod grouper makes the PodGroup out of a RayCluster or RayJob; pods need the queue and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import THE_CLUSTER, dressed
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.violations import Violation, is_missing

QUEUE: Final = "kai.scheduler/queue"


class Kai(NoScheduler):
    """The submitter of a RayJob is one more pod of the same PodGroup, which does not wait for it."""

    name = "kai-scheduler"

    def warnings(self, owner: Owner) -> Sequence[Violation]:
        if owner.labels.get(QUEUE):
            return ()
        return (is_missing(f"metadata.labels[{QUEUE}]", "name a queue of KAI, or pods wait for ever"),)

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:
        return dressed(item, gang.labels({QUEUE: QUEUE}), {}, "" if group == THE_CLUSTER else self.name)
