"""PodGroups: what all of them have in common, what to do about them, and how one that drifted comes back. Pure.

None is taken from a living owner: pods name it, and a scheduler that misses it starts them one by one. Those of
Kubernetes itself cannot be changed, so they are made anew under the same name; pods wait for them meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Resource
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Scheduler
from raykeeper.operator.shared.children.drift import Drift, Replace, drift, overlay
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.children.plan import ChildAction, CreateChild, plan_children
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.totals import amount

KUBERNETES_GROUP: Final = "scheduling.k8s.io"
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
"""A finalizer that Kubernetes gives its own PodGroups: a deleted one stays while pods name it."""

LEFT_OUT: Final = ("networkTopology", "subGroupPolicy")
"""Fields that nobody else writes, so that they go when they are no longer asked for."""


def desired_pod_group(
    resource: Resource[Any], gang: Gang, name: str, spec: JSON, annotations: Mapping[str, str] | None = None
) -> JSON:
    """A PodGroup that goes with its owner."""
    own = {labels.CREATED_BY: labels.CREATED_BY_KUBERAY_OPERATOR}
    metadata = child_metadata(gang.owner, name, own, annotations)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def plan_gang(
    scheduler: Scheduler, gang: Gang, found: Mapping[ChildKey, JSON], *, is_at_rest: bool
) -> list[ChildAction]:
    """Make and repair what the scheduler needs before there are pods; at rest only repair."""
    wanted = scheduler.at_rest(gang) if is_at_rest else scheduler.objects(gang)
    kinds, keys = {kind.kind for kind in scheduler.kinds}, {child_key(one) for one in wanted}
    others = [scheduler.emptied(one) for key, one in found.items() if key.kind in kinds and key not in keys]
    actions = plan_children(gang.owner, [*wanted, *filter(None, others)], found, _drift)
    return [action for action in actions if not (is_at_rest and isinstance(action, CreateChild))]


def _drift(_owner: Owner, desired: JSON, actual: JSON) -> Drift:
    return pod_group_drift(desired, actual)


def pod_group_drift(desired: JSON, actual: JSON) -> Drift:
    """Fields that nobody asked for are the scheduler's; amounts are compared as amounts."""
    if desired["apiVersion"].partition("/")[0] == KUBERNETES_GROUP:
        return _unchangeable_drift(desired, actual)
    wanted, found = dict(desired["spec"]), dict(actual.get("spec") or {})
    amounts, known = wanted.pop("minResources", {}), found.get("minResources") or {}
    spec: JSON = dict.fromkeys(field for field in LEFT_OUT if field in found and field not in wanted)
    spec |= overlay(wanted, found)
    if not _are_equal(amounts, known):
        spec["minResources"] = {**dict.fromkeys(known.keys() - amounts.keys()), **amounts}
    return drift(desired, actual, {"spec": spec} if spec else None)


def _unchangeable_drift(desired: JSON, actual: JSON) -> Drift:
    repair = drift(desired, actual)
    if _has(actual.get("spec"), desired["spec"]):
        return repair
    return Replace("Kubernetes allows no change of a gang's size", meanwhile=repair, held_by=PROTECTION)


def _has(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; the API server adds fields of its own, also inside of lists."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_has(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_has, found, wanted))
    return bool(found == wanted)


def _are_equal(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return one.keys() == other.keys() and all(amount(one, name).nano == amount(other, name).nano for name in one)
