"""What to do about the children of an owner that are not pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from raykeeper.api.meta import JSON
from raykeeper.operator.shared.children.drift import Drift, DriftOf, Patch, Replace
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.verbs import Update, update_verb
from raykeeper.operator.shared.owner import Owner


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
    held_by: str = ""
    """A finalizer to take off first."""


@dataclass(frozen=True)
class DeleteChild:
    """Remove a child that is no longer asked for."""

    key: ChildKey
    uid: str
    waits_for_its_own: bool = False
    """It stays, on its way out, until all that it owns is gone."""


ChildAction = CreateChild | PatchChild | ReplaceChild | DeleteChild


def plan_children(
    owner: Owner,
    desired: Iterable[JSON],
    actual: Mapping[ChildKey, JSON],
    drift_of: DriftOf,
    *,
    obsolete: Iterable[ChildKey] = (),
    is_in_use: bool = False,
) -> list[ChildAction]:
    """Make what is missing, repair what drifted, remove what is obsolete (and there); in any order.

    `is_in_use`: running pods are connected through the children, so none is replaced that would cut them off.
    """
    actions: list[ChildAction] = []
    for child in desired:
        found = actual.get(child_key(child))
        if found is None:
            actions.append(CreateChild(child))
        else:
            actions += _plan_drift(child, found, drift_of(owner, child, found), is_in_use)
    return [*actions, *(DeleteChild(key, actual[key]["metadata"]["uid"]) for key in obsolete)]


def _plan_drift(desired: JSON, found: JSON, drift: Drift, is_in_use: bool) -> list[ChildAction]:
    """How a child that is there comes to be as it should."""
    key = child_key(desired)
    match drift:
        case Patch(body):
            return [] if update_verb(key.kind) is Update.NEVER else [PatchChild(key, body)]
        case Replace(cuts_connections=True, meanwhile=meanwhile) if is_in_use:
            return [PatchChild(key, meanwhile.body)] if meanwhile else []
        case Replace(held_by=held_by):
            return [ReplaceChild(key, found["metadata"]["uid"], desired, held_by)]
        case None:
            return []
