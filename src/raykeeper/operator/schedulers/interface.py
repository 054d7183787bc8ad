"""What a batch scheduler adds to clusters. Pure: it says what should be, and the controllers bring it about.

A scheduler brings objects of its own (a PodGroup, say), which are children like all others: planned, written and
repaired by the engine. And it dresses pods, and templates of pods, with what the scheduler knows them by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Resource
from raykeeper.api.podtemplates import pod_spec
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.violations import Violation

SUBMITTER_GROUP = "submittergroup"
"""What the pod that submits a RayJob's job counts as."""
THE_CLUSTER = ""
"""What the RayCluster of a RayJob counts as: it gets labels and annotations, and no more."""


@dataclass(frozen=True)
class Wait:
    """What a gang waits for, as its scheduler says it."""

    reason: str
    message: str


class Scheduler(Protocol):
    """One of those that `--batch-scheduler` names, or none."""

    name: str
    """As the flag spells it; empty for none."""
    kinds: tuple[Resource[Any], ...]
    """Of the objects that it brings. The API server may lack them."""

    def violations(self, owner: Owner) -> Sequence[Violation]:
        """What of a RayCluster's or RayJob's labels this scheduler cannot read."""

    def warnings(self, owner: Owner) -> Sequence[Violation]:
        """What will keep its pods waiting, as far as labels say it."""

    def objects(self, gang: Gang) -> Sequence[JSON]:
        """Children that must be there before pods."""

    def at_rest(self, gang: Gang) -> Sequence[JSON]:
        """The same children once the job has ended or is suspended, or while the cluster is. Groups that the gang
        still has still run. What is missing of these is not made.
        """

    def emptied(self, found: JSON) -> JSON | None:
        """How an object should be that it brought and that is none of the above, such as that of a group which the
        spec has no more; None where it may stay as it is.
        """

    def waits(self, found: Iterable[JSON]) -> Wait | None:
        """What these objects, which it brought, say that their pods wait for; None where that is nothing."""

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:
        """A pod of a group, or a template of pods, as the scheduler wants it. What is given is not changed.

        The gang is the RayCluster's for a Ray pod, and the RayJob's for its submitter and for the RayCluster it makes.
        """


def dressed(
    item: JSON, new_labels: Mapping[str, str], annotations: Mapping[str, str], scheduler_name: str = ""
) -> JSON:
    """A copy with these labels and annotations; of a pod or template also with the scheduler that starts it."""
    metadata = dict(item.get("metadata") or {})
    for field, entries in (("labels", new_labels), ("annotations", annotations)):
        if entries:
            metadata[field] = {**(metadata.get(field) or {}), **entries}
    copy = {**item, "metadata": metadata}
    return {**copy, "spec": {**pod_spec(item), "schedulerName": scheduler_name}} if scheduler_name else copy


def wants_gang(owner: Owner) -> bool:
    """Whether the owner asks for its pods to start together, where a scheduler does so only on demand."""
    return labels.GANG_SCHEDULING_ENABLED in owner.labels
