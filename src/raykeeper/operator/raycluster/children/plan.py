"""What to do about the children of a RayCluster that are not pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster
from raykeeper.errors import InvalidSpec
from raykeeper.operator.raycluster.children.desired import ChildKey, Children, child_drift, child_key
from raykeeper.operator.raycluster.children.drift import Drift, Patch, Replace
from raykeeper.operator.raycluster.children.obsolete import Usage, former_head_services, obsolete_children
from raykeeper.operator.raycluster.children.storage import claim_differences


@dataclass(frozen=True)
class CreateChild:
    """Make a child that is not there."""

    body: JSON


@dataclass(frozen=True)
class PatchChild:
    """Put right what drifted."""

    key: ChildKey
    patch: JSON


@dataclass(frozen=True)
class ReplaceChild:
    """Delete a child that cannot be changed, and make it anew."""

    key: ChildKey
    uid: str
    body: JSON


@dataclass(frozen=True)
class DeleteChild:
    """Remove a child that is no longer asked for."""

    key: ChildKey
    uid: str


ChildAction = CreateChild | PatchChild | ReplaceChild | DeleteChild


def plan_children(
    cluster: RayCluster, children: Children, actual: Mapping[ChildKey, JSON], usage: Usage
) -> list[ChildAction]:
    """Make what is missing, repair what drifted, remove what is obsolete; in any order."""
    actions: list[ChildAction] = []
    for desired in children.desired:
        found = actual.get(child_key(desired))
        if found is None:
            actions.append(CreateChild(desired))
        else:
            actions += plan_drift(desired, found, child_drift(cluster, desired, found), usage)
    services = [found for key, found in actual.items() if key.kind == "Service"]
    former = [ChildKey("Service", name) for name in former_head_services(cluster, services, usage)]
    obsolete = [*obsolete_children(cluster, children, list(actual), usage), *former]
    return [*actions, *(DeleteChild(key, actual[key]["metadata"]["uid"]) for key in obsolete)]


def child_problems(cluster: RayCluster, children: Children, actual: Mapping[ChildKey, JSON]) -> list[InvalidSpec]:
    """What is asked for about children and cannot be had; nothing else waits for it."""
    claims = [child for child in children.desired if child["kind"] == "PersistentVolumeClaim"]
    found = [(claim, actual[child_key(claim)]) for claim in claims if child_key(claim) in actual]
    sentences = [sentence for claim, there in found for sentence in claim_differences(cluster, claim, there)]
    return [*children.problems, *(InvalidSpec("FailedToCreatePVC", sentence) for sentence in sentences)]


def plan_drift(desired: JSON, found: JSON, drift: Drift, usage: Usage) -> list[ChildAction]:
    """How a child that is there comes to be as it should."""
    key = child_key(desired)
    match drift:
        case Patch(body):
            return [PatchChild(key, body)]
        case Replace(cuts_connections=True, meanwhile=meanwhile) if usage.has_pods:
            return [PatchChild(key, meanwhile.body)] if meanwhile else []
        case Replace():
            return [ReplaceChild(key, found["metadata"]["uid"], desired)]
        case None:
            return []
