"""Carries out what was decided about children that are not pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.http.requests import Propagation
from raykeeper.kube.resources import ROLE_BINDINGS, ROLES
from raykeeper.logs import Log
from raykeeper.operator.shared.children.adoption import POD_GROUP, Standing, standing, taking_patch
from raykeeper.operator.shared.children.drift import DriftOf
from raykeeper.operator.shared.children.keys import CHILD_RESOURCES, ChildKey, child_key
from raykeeper.operator.shared.children.plan import (
    ChildAction,
    CreateChild,
    DeleteChild,
    PatchChild,
    ReplaceChild,
)
from raykeeper.operator.shared.children.verbs import update_child
from raykeeper.operator.shared.owner import Owner

SPOKEN: Final = {"PersistentVolumeClaim": "PVC"}
"""Kinds that KubeRay's events call by another name."""

DOORS: Final = frozenset({"Ingress", "Route"})
"""Ways in from outside, without which a cluster works."""

ROLE, ROLE_BINDING = ROLES.kind, ROLE_BINDINGS.kind

Refusal = ApiError | Unavailable
Verb = Literal["Create", "Update", "Delete"]
log = Log("raykeeper.operator.children")


@dataclass(frozen=True)
class Requirement:
    """An object that the user must supply, and what is said where it is not there."""

    resource: Resource[Any]
    name: str
    reason: str
    message: str
    is_vital: bool
    """Whether no pod is made without it."""


@dataclass
class ChildLedger:
    """What a pass made of children, and what was refused."""

    made: dict[ChildKey, JSON] = field(default_factory=dict)
    """Those that are there although the cache may not show it yet."""
    missing: dict[ChildKey, Refusal] = field(default_factory=dict)
    """Those that could not be made, and what the user should have supplied; without some of them pods wait."""
    refusals: list[Refusal] = field(default_factory=list)
    """All that is to be tried again: also repairs and deletions, for which nothing waits."""


class ForeignChild(ApiError):
    """An object of the child's name belongs to somebody else."""


class UnknownKind(NotFound):
    """The API server does not serve the kind of a child."""


class ChildWriter:
    """Applies child actions of one controller and tells what came of them."""

    def __init__(
        self,
        kube: Kube,
        recorder: EventRecorder,
        drift_of: DriftOf,
        spoken: Mapping[str, str] = SPOKEN,
        more_kinds: Iterable[Resource[Any]] = (),
    ) -> None:
        """`more_kinds`: of children that not every operator makes, such as those of a batch scheduler."""
        self._kube = kube
        self._recorder = recorder
        self._drift_of = drift_of
        self._spoken = spoken
        self._resources = {**CHILD_RESOURCES, **{resource.kind: resource for resource in more_kinds}}

    async def apply(self, owner: Owner, actions: Sequence[ChildAction]) -> ChildLedger:
        """Do all of it at once, but bind Roles once they are known to be as they should, and make PodGroups after what
        they are of. What was refused is told and noted, and keeps nothing else from being done.
        """
        ledger = ChildLedger()
        makes = [action for action in actions if isinstance(action, CreateChild | ReplaceChild)]
        bindings, groups = ([one for one in makes if _is_of(one, kind)] for kind in (ROLE_BINDING, POD_GROUP))
        others = [action for action in actions if action not in bindings and action not in groups]
        await asyncio.gather(*(self._apply(owner, action, ledger) for action in others))
        roles = {child_key(one.body): one.body for one in others if isinstance(one, CreateChild) and _is_of(one, ROLE)}
        await asyncio.gather(
            *(self._bind(owner, action, roles, ledger) for action in bindings),
            *(self._apply(owner, action, ledger) for action in groups),
        )
        return ledger

    async def look_for(self, owner: Owner, requirements: Iterable[Requirement], ledger: ChildLedger) -> None:
        """Tell what the user should have supplied and has not; what is vital is noted as refused."""
        for needed in requirements:
            try:
                await self._kube.get(needed.resource, ObjectKey(owner.key.namespace, needed.name))
            except NotFound as error:
                self._recorder.warning(owner.ref(), needed.reason, needed.message, action="Reconcile")
                if needed.is_vital:
                    ledger.missing[ChildKey(needed.resource.kind, needed.name)] = error
                    ledger.refusals.append(error)
            except (ApiError, Unavailable) as error:
                log.warning("cannot look for what is needed", owner=str(owner), error=str(error))

    async def _apply(self, owner: Owner, action: ChildAction, ledger: ChildLedger) -> None:
        verb, key = describe(action)
        kind = self._spoken.get(key.kind, key.kind)
        try:
            done = await self._write(owner, action, ledger)
        except (ApiError, Unavailable) as error:
            self._recorder.warning(owner.ref(), f"FailedTo{verb}{kind}", str(error), action=verb)
            if not _is_bearable(action, error, ledger):
                ledger.refusals.append(error)
            return
        if done:
            self._recorder.normal(owner.ref(), f"{done}d{kind}", f"{done}d {key.kind} {key.name}", action=done)

    async def _bind(
        self, owner: Owner, action: CreateChild | ReplaceChild, roles: Mapping[ChildKey, JSON], ledger: ChildLedger
    ) -> None:
        """Make a binding, unless its Role was not in the cache as ours and does not have our rules."""
        key = ChildKey(ROLE, action.body["roleRef"]["name"])
        wanted, found = roles.get(key), ledger.made.get(key)
        if wanted is None or (found is not None and found.get("rules") == wanted["rules"]):
            await self._apply(owner, action, ledger)
            return
        name = child_key(action.body).name
        cure = f"Role {key.name} is somebody else's and has other rules: rename it, or this {owner.kind}"
        note = f"RoleBinding {name} is not made: {cure}"
        self._recorder.warning(owner.ref(), f"FailedToCreate{ROLE_BINDING}", note, action="Create")

    async def _write(self, owner: Owner, action: ChildAction, ledger: ChildLedger) -> Verb | None:
        """What was done in the end; None where it turned out that nothing had to be."""
        match action:
            case CreateChild(body):
                return await self._create(owner, body, ledger)
            case PatchChild(key, patch):
                await self._update(owner, key, patch)
                return "Update"
            case ReplaceChild(key, uid, body, held_by):
                if held_by:
                    await self._release(owner, key, uid, held_by)
                await self._delete(owner, key, uid)
                await self._create(owner, body, ledger)
                return "Update"
            case DeleteChild(key, uid, waits_for_its_own):
                await self._delete(owner, key, uid, "Foreground" if waits_for_its_own else None)
                return "Delete"

    async def _create(self, owner: Owner, body: JSON, ledger: ChildLedger) -> Verb | None:
        key = child_key(body)
        resource: Resource[JSON] = self._resources[key.kind].read_as(dict)
        try:
            try:
                ledger.made[key] = await self._kube.create(resource, body, owner.key.namespace)
            except AlreadyExists as error:
                # Not in our cache: it lost the label we watch by, the cache lags, or it is not ours.
                found = await self._kube.get(resource, _object_key(owner, key))
                ledger.made[key] = _unless_foreign(owner, body, found, error)
                return await self._take(owner, body, found, ledger)
            except NotFound as error:
                if key.kind in CHILD_RESOURCES:
                    raise
                cure = f"the API server does not know {resource} ({resource.version}): install what serves it"
                raise UnknownKind(error.request, error.status, error.reason, cure) from error
        except (ApiError, Unavailable) as error:
            if key not in ledger.made:
                ledger.missing[key] = error
            raise
        return "Create"

    async def _take(self, owner: Owner, body: JSON, found: JSON, ledger: ChildLedger) -> Verb | None:
        """Make what is there the owner's and as it should be, unless the user supplied it."""
        key = child_key(body)
        if standing(owner, body, found) is Standing.SUPPLIED:
            return None
        patch = taking_patch(owner, body, found, self._drift_of)
        changed = await self._update(owner, key, patch) if patch else None
        ledger.made[key] = changed or found
        return "Update" if changed else None

    async def _update(self, owner: Owner, key: ChildKey, patch: JSON) -> JSON | None:
        return await update_child(self._kube, self._resources[key.kind], _object_key(owner, key), patch)

    async def _release(self, owner: Owner, key: ChildKey, uid: str, finalizer: str) -> None:
        """Take a finalizer off, so that the object goes at once when it is deleted."""
        found = await self._kube.find(self._resources[key.kind].read_as(dict), _object_key(owner, key))
        if found is None or found["metadata"]["uid"] != uid or finalizer not in found["metadata"].get("finalizers", ()):
            return
        left = [one for one in found["metadata"]["finalizers"] if one != finalizer]
        # Only as it was seen: the list is replaced whole.
        seen = {name: found["metadata"][name] for name in ("uid", "resourceVersion")}
        await self._update(owner, key, {"metadata": {**seen, "finalizers": left}})

    async def _delete(self, owner: Owner, key: ChildKey, uid: str, propagation: Propagation | None = None) -> None:
        try:
            resource = self._resources[key.kind]
            await self._kube.delete(resource, _object_key(owner, key), uid=uid, propagation=propagation)
        except NotFound:
            return


def _is_bearable(action: ChildAction, error: Refusal, ledger: ChildLedger) -> bool:
    """Whether the owner can do without: pods are made all the same, and it is no failure."""
    key = describe(action)[1]
    if isinstance(error, ForeignChild):
        return key.kind in DOORS
    # Not every installation grants all rights; what is there is used as it is.
    return isinstance(error, Forbidden) and (isinstance(action, PatchChild) or key in ledger.made)


def _unless_foreign(owner: Owner, body: JSON, found: JSON, error: AlreadyExists) -> JSON:
    """What is there under a child's name. Raises `ForeignChild` where it is in the way."""
    if standing(owner, body, found) is not Standing.FOREIGN:
        return found
    key = child_key(body)
    message = f"{key.kind} {key.name} is there already and does not belong to this {owner.kind}"
    raise ForeignChild(error.request, 409, "Conflict", message) from error


def _is_of(action: CreateChild | ReplaceChild, kind: str) -> bool:
    return child_key(action.body).kind == kind


def describe(action: ChildAction) -> tuple[Verb, ChildKey]:
    """The verb of an action, as events spell it, and what it is done to."""
    match action:
        case CreateChild(body):
            return "Create", child_key(body)
        case PatchChild(key, _) | ReplaceChild(key, _, _, _):
            return "Update", key
        case DeleteChild(key, _, _):
            return "Delete", key


def _object_key(owner: Owner, key: ChildKey) -> ObjectKey:
    return ObjectKey(owner.key.namespace, key.name)
