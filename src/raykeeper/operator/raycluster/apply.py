"""Carries out what was decided about pods: every write to pods is here, each remembered until the cache shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from raykeeper.api import labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.backoff import Backoff
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.controllers.expectations import Expectations
from raykeeper.kube.errors import AlreadyExists, ApiError, Conflict, NotDone, NotFound
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.resources import PODS
from raykeeper.logs import Log
from raykeeper.operator.raycluster.actions import AdoptPod, CreateHead, CreateWorker, DeletePod, PodAction, RefreshHead
from raykeeper.operator.raycluster.ledger import Ledger, Refused, pod_write_of, without_chance
from raykeeper.operator.raycluster.pod import HEAD_POD, parse_pod
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.slow_start import slow_start

T = TypeVar("T")

# About 15 seconds in all, as long as an API server takes to restart. A pod that stays in doubt blocks its group longer.
CREATE_ATTEMPTS = 6
CREATE_PAUSE = Backoff(base=0.5, limit=8.0, jitter=0.2)
log = Log("raykeeper.operator.raycluster")

NAMES_IN_NOTE = 10  # an Event has room for a kilobyte
MOST_REFUSALS_TOLD = 5  # of a pass; each group may be refused for a reason of its own


class GroupKey(NamedTuple):
    """One group of one cluster, or its head: what expectations are kept for."""

    cluster: ObjectKey
    tracked_as: str


@dataclass(frozen=True)
class PodFactory:
    """Makes the pods that actions ask for; their names are decided here, before they are sent."""

    head: Callable[[RayCluster], JSON]
    worker: Callable[[RayCluster, CreateWorker], JSON]
    marks: Callable[[RayCluster], dict[str, str]]
    """The annotations by which a head pod tells its version and the hash of its spec."""


class PodWriter:
    """Applies pod actions, one cluster at a time for each caller."""

    def __init__(
        self, kube: Kube, factory: PodFactory, expectations: Expectations[GroupKey], recorder: EventRecorder
    ) -> None:
        self._kube = kube
        self._factory = factory
        self._expectations = expectations
        self._recorder = recorder

    async def apply(self, cluster: RayCluster, actions: Sequence[PodAction]) -> Ledger:
        """Delete, mark, create. What is refused is told, not raised.

        A pod that must not be deleted keeps no other from going. Without a head no worker is made; otherwise a group
        that is refused its pods keeps no other from having them.
        """
        ledger = Ledger()
        deletes = [action for action in actions if isinstance(action, DeletePod)]
        marks = [action for action in actions if isinstance(action, RefreshHead | AdoptPod)]
        heads = [action for action in actions if isinstance(action, CreateHead)]
        workers = [action for action in actions if isinstance(action, CreateWorker)]
        await _until_refused(deletes, lambda one: self._delete(cluster, one, ledger), lambda one: one.pod.uid)
        await _until_refused(marks, lambda one: self._mark(cluster, one, ledger), lambda one: one.pod.uid)
        await _until_refused(heads, lambda one: self._create(cluster, one, ledger), str)
        if len(ledger.made) == len(heads):
            await _until_refused(workers, lambda one: self._create(cluster, one, ledger), lambda one: one.group)
        self._tell(cluster, ledger)
        return ledger

    async def _create(self, cluster: RayCluster, action: CreateHead | CreateWorker, ledger: Ledger) -> None:
        write = pod_write_of(action)
        if isinstance(action, CreateHead):
            group, tracked_as, body = labels.HEAD_GROUP, HEAD_POD, self._factory.head(cluster)
        else:
            group, tracked_as, body = action.group, action.group, self._factory.worker(cluster, action)
        owner, name = GroupKey(cluster.key, tracked_as), body["metadata"]["name"]
        self._expectations.expect_create(owner, name)
        try:
            pod = parse_pod(await self._create_for_sure(body, ObjectKey(cluster.metadata.namespace, name)))
        except NotDone as error:
            self._expectations.create_failed(owner, name)
            ledger.refused.append(Refused(write, error, without_chance(error, name)))
            raise
        except Unavailable as error:
            self._expectations.create_unsure(owner, name)
            ledger.refused.append(Refused(write, error, without_chance(error, name)))
            raise
        except ApiError as error:
            self._expectations.create_failed(owner, name)
            ledger.refused.append(Refused(write, error, without_chance(error, name)))
            raise
        self._expectations.create_answered(owner, name, pod.uid)
        ledger.made.append(pod)
        ledger.done.setdefault((write, f"of group {group}"), []).append(name)

    async def _create_for_sure(self, body: JSON, key: ObjectKey) -> Object:
        """The pod made. A create that nobody answered is sent again under the same name: then either it is
        made, or it turns out that it was."""
        for failures in range(1, CREATE_ATTEMPTS):
            try:
                return await self._kube.create(PODS, body, key.namespace)
            except Unavailable as error:
                if failures == 1 and isinstance(error, NotDone):
                    raise
                await asyncio.sleep(CREATE_PAUSE.delay(failures))
            except AlreadyExists:
                if failures > 1 and (pod := await self._kube.find(PODS, key)):
                    return pod
                raise
        try:
            return await self._kube.create(PODS, body, key.namespace)
        except NotDone as error:  # this one was not done, but an earlier one may have been
            raise Unavailable(error.service, error.cause, retry_after=error.retry_after) from error

    async def _delete(self, cluster: RayCluster, action: DeletePod, ledger: Ledger) -> None:
        pod, write = action.pod, pod_write_of(action)
        owner = GroupKey(cluster.key, pod.tracked_as)
        if not (action.is_forced and pod.is_held):  # of which the watch may have nothing to show
            self._expectations.expect_delete(owner, pod.uid)
        try:
            key = ObjectKey(cluster.metadata.namespace, pod.name)
            await self._kube.delete(PODS, key, uid=pod.uid, grace_seconds=0 if action.is_forced else None)
        except NotFound:
            self._expectations.delete_failed(owner, pod.uid)  # gone already; the cache will say so
            ledger.deleted.add(pod.uid)
        except Conflict as error:
            self._expectations.delete_failed(owner, pod.uid)
            ledger.unfinished.append(error)
        except (ApiError, Unavailable) as error:
            self._expectations.delete_failed(owner, pod.uid)
            ledger.refused.append(Refused(write, error, str(error)))
            raise
        else:
            ledger.deleted.add(pod.uid)
            ledger.done.setdefault((write, action.explanation), []).append(pod.name)

    async def _mark(self, cluster: RayCluster, action: RefreshHead | AdoptPod, ledger: Ledger) -> None:
        """Write on this very pod whose it is, or which spec it was made for."""
        pod = action.pod
        mark: JSON = {"annotations": self._factory.marks(cluster)}
        if isinstance(action, AdoptPod):
            mark = {"ownerReferences": [Owner.of(cluster).reference()]}
        try:
            key = ObjectKey(cluster.metadata.namespace, pod.name)
            await self._kube.merge_patch(PODS, key, {"metadata": {"uid": pod.uid, **mark}})
        except (ApiError, Unavailable) as error:
            ledger.unfinished.append(error)
            raise
        log.info("pod taken over", cluster=cluster.key, pod=pod.name)

    def _tell(self, cluster: RayCluster, ledger: Ledger) -> None:
        """One Event for each kind of write, however many pods it was done to."""
        regarding = Owner.of(cluster).ref()
        for (write, explanation), names in ledger.done.items():
            note = f"{write.verb}d {_enumerated(names)} {explanation}"
            if write.verb == "Delete":
                note = f"Deleted {_enumerated(names)}: {explanation}"
            self._recorder.normal(regarding, write.done, note, action=write.verb)
            log.info("pods written", cluster=cluster.key, what=write.done, why=explanation, pods=names)
        for write, text in list(dict.fromkeys((one.write, one.text) for one in ledger.refused))[:MOST_REFUSALS_TOLD]:
            self._recorder.warning(regarding, write.refused, text, action=write.verb)


async def _until_refused(
    items: Sequence[T], write: Callable[[T], Awaitable[None]], kin: Callable[[T], Hashable]
) -> None:
    """Write in parallel; a refusal by the world ends it for what is kin, anything else rises."""
    try:
        await slow_start(items, write, kin)
    except* (ApiError, Unavailable):
        pass  # in the ledger


def _enumerated(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_IN_NOTE])
    return shown if len(names) <= NAMES_IN_NOTE else f"{len(names)} pods ({shown}, ...)"
