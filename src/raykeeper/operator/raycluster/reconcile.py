"""Moves one RayCluster towards its spec: read, decide, act, say."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version

import msgspec

from raykeeper.api import labels, names
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster, RayClusterStatus
from raykeeper.kube.controllers.expectations import Expectations
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.merge import merge_patch_between
from raykeeper.kube.resources import SERVICES
from raykeeper.operator.context import Context
from raykeeper.operator.gates import Gate
from raykeeper.operator.kinds import WATCHED_PODS, WATCHED_RAYCLUSTERS
from raykeeper.operator.raycluster.actions import CreateWorker
from raykeeper.operator.raycluster.apply import GroupKey, PodFactory, PodWriter, cluster_ref
from raykeeper.operator.raycluster.children.apply import ChildLedger, ChildWriter, Refusal
from raykeeper.operator.raycluster.children.auth_secret import TOKEN_BYTES
from raykeeper.operator.raycluster.children.desired import ChildKey, ChildSettings, desired_children
from raykeeper.operator.raycluster.children.plan import child_problems, plan_children
from raykeeper.operator.raycluster.deletion import Deletion
from raykeeper.operator.raycluster.ledger import Ledger
from raykeeper.operator.raycluster.observe import Observed, Observer
from raykeeper.operator.raycluster.plan import Facts, plan_pods
from raykeeper.operator.raycluster.pod import LOST_AFTER, REPLACED_AFTER, STUCK_AFTER, Pod
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod, desired_worker_pod
from raykeeper.operator.raycluster.pods.hash import recreate_hash
from raykeeper.operator.raycluster.pods.metadata import head_marks
from raykeeper.operator.raycluster.progress import Progress
from raykeeper.operator.raycluster.reading import read_cluster
from raykeeper.operator.raycluster.recent import RecentPods
from raykeeper.operator.raycluster.status import Failure, Outcome, invalid_status, status_of, without_conditions
from raykeeper.operator.raycluster.validation.validate import violations, warnings
from raykeeper.operator.raycluster.validation.violation import Violation

NAME = "raycluster-controller"
NATIVE_SIDECARS_SINCE = (1, 29)


class RayClusterReconciler:
    """Safe at any time, any number of times, after any crash."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = context.recorder(NAME)
        self._clusters = context.informers.cache(WATCHED_RAYCLUSTERS)
        self._observer = Observer(context.informers, context.surroundings)
        self._expectations: Expectations[GroupKey] = Expectations(context.clock)
        self._recent = RecentPods(lambda key, group: self._expectations.satisfied(GroupKey(key, group)))
        self._progress = Progress(context.clock)
        self._latest: dict[ObjectKey, Object] = {}  # what our own status writes returned, until the cache shows it
        self._has_conditions = context.settings.gates.is_on(Gate.STATUS_CONDITIONS)
        self._version = f"raykeeper-{version('raykeeper')}"
        self._pod_defaults = PodDefaults(
            self._version, context.settings.pods, context.surroundings.kubernetes >= NATIVE_SIDECARS_SINCE
        )
        self._children = ChildWriter(context.kube, self._recorder)
        self._pods = PodWriter(context.kube, self._factory(), self._expectations, self._recorder)
        self._deletion = Deletion(context, self._recorder, self._pod_defaults)
        context.informers.of(WATCHED_PODS).on_change(self._note_pod)

    async def __call__(self, key: ObjectKey) -> Requeue:
        item = self._current(key)
        if item is None:
            self._latest.pop(key, None)
            self._recent.forget(key)
            self._progress.forget(key)
            return Requeue.never()  # owner references collect the children
        cluster, unreadable = read_cluster(item)
        if not self._has_conditions:
            cluster = without_conditions(cluster)
        if cluster.spec.managed_by not in (None, "", labels.MANAGED_BY_KUBERAY):
            return Requeue.never()
        observed = self._observer.observe(cluster)
        observed = replace(observed, pods=self._recent.overlay(cluster, observed.pods))
        if cluster.metadata.deletion_timestamp is not None:
            return await self._deletion.advance(cluster, observed)
        if broken := unreadable or violations(cluster, self._context.settings.gates, self._context.surroundings):
            return await self._refuse(cluster, item, broken)
        await self._deletion.prepare(cluster)
        return await self._reconcile(cluster, item, observed)

    async def _reconcile(self, cluster: RayCluster, item: Object, observed: Observed) -> Requeue:
        """One pass over a valid cluster: children, then pods, then what is to be said about it."""
        for warning in warnings(cluster):
            self._recorder.warning(cluster_ref(cluster), warning.reason, str(warning), action="Validate")
        children, now = await self._apply_children(cluster, observed), self._context.clock.now()
        ledger = Ledger()
        if not children.refusals:
            ledger = await self._pods.apply(cluster, plan_pods(cluster, observed.pods, self._facts(cluster, now)))
        pods = ledger.after(observed.pods, now)
        self._recent.remember(cluster, ledger.touched(pods))
        head_service = ChildKey(SERVICES.kind, names.head_service_name(cluster))
        outcome = Outcome(
            pods,
            observed.children.get(head_service) or children.made.get(head_service),
            _first_failure(children.refusals) or ledger.failure,
            now,
            self._has_conditions,
        )
        held_seconds = await self._say(cluster, item, status_of(cluster, outcome))
        if errors := [*children.refusals, *ledger.errors]:
            raise ExceptionGroup(f"RayCluster {cluster.key} is not as it should be yet", errors)
        if held_seconds:
            return Requeue.after(held_seconds)
        return self._next_look(cluster, observed.pods, now)

    async def _apply_children(self, cluster: RayCluster, observed: Observed) -> ChildLedger:
        settings = self._context.settings.raycluster
        uses_routes = self._context.surroundings.is_openshift and not settings.uses_ingress_on_openshift
        wanted = ChildSettings(not settings.head_service_has_ip, uses_routes)
        children = desired_children(cluster, wanted, secrets.token_bytes(TOKEN_BYTES))
        for problem in child_problems(cluster, children, observed.children):
            self._recorder.warning(cluster_ref(cluster), problem.reason, problem.message, action="Create")
        actions = plan_children(cluster, children, observed.children, observed.usage)
        ledger = await self._children.apply(cluster, cluster_ref(cluster), actions)
        if not observed.has_head and not cluster.spec.suspend:
            await self._children.look_for(cluster, cluster_ref(cluster), ledger)
        return ledger

    async def _refuse(self, cluster: RayCluster, item: Object, broken: Sequence[Violation]) -> Requeue:
        """Say what is wrong, in a condition and an event, and leave everything as it is until the spec changes."""
        failure = Failure(broken[0].reason, "; ".join(map(str, broken)))
        self._recorder.warning(cluster_ref(cluster), failure.reason, failure.message, action="Validate")
        if self._has_conditions:
            await self._write_status(cluster, item, invalid_status(cluster, failure, self._context.clock.now()))
        return Requeue.never()

    async def _say(self, cluster: RayCluster, item: Object, status: RayClusterStatus) -> float:
        """Write the status, unless it can wait; returns how many seconds it waits."""
        seconds = self._progress.seconds_to_wait(cluster, status)
        if not seconds:
            await self._write_status(cluster, item, status)
        return seconds

    async def _write_status(self, cluster: RayCluster, item: Object, status: RayClusterStatus) -> None:
        """One patch, and only if something changed."""
        if status == cluster.status:
            return
        known: JSON = msgspec.json.decode(item.status) if item.status else {}
        patch = merge_patch_between(known, msgspec.to_builtins(status))
        self._latest[cluster.key] = await self._context.kube.merge_patch(
            RAY_CLUSTERS, cluster.key, {"status": patch}, subresource="status"
        )

    def _current(self, key: ObjectKey) -> Object | None:
        """The cluster as last seen: by the cache, or in the answer to our own write if that is newer."""
        cached, written = self._clusters.get(key), self._latest.get(key)
        if cached is None or written is None:
            return cached
        if written.metadata.uid == cached.metadata.uid and _is_newer(written, cached):
            return written
        del self._latest[key]
        return cached

    def _facts(self, cluster: RayCluster, now: datetime) -> Facts:
        groups = [labels.HEAD_GROUP, *(group.group_name for group in cluster.spec.worker_group_specs)]
        settings = self._context.settings
        return Facts(
            now=now,
            unsettled=[group for group in groups if not self._expectations.satisfied(GroupKey(cluster.key, group))],
            recreate_hash=recreate_hash(cluster),
            version=self._version,
            may_shrink_autoscaled=settings.raycluster.may_shrink_autoscaled_groups,
            has_indexes=settings.gates.is_on(Gate.MULTI_HOST_INDEXING),
            new_name=random_end,
        )

    def _factory(self) -> PodFactory:
        defaults = self._pod_defaults

        def worker(cluster: RayCluster, action: CreateWorker) -> JSON:
            group = next(one for one in cluster.spec.worker_group_specs if one.group_name == action.group)
            return desired_worker_pod(cluster, group, defaults, action.slot, random_end())

        def marks(cluster: RayCluster) -> dict[str, str]:
            return head_marks(cluster, self._version)

        return PodFactory(lambda cluster: desired_head_pod(cluster, defaults, random_end()), worker, marks)

    def _note_pod(self, old: Object | None, new: Object | None) -> None:
        """Lower the expectations of the group whose pod appeared, or is going."""
        pod = new or old
        if pod is None:
            return
        meta = pod.metadata
        cluster = ObjectKey(meta.namespace, meta.labels.get(labels.CLUSTER, ""))
        owner = GroupKey(cluster, meta.labels.get(labels.GROUP, ""))
        if new is None or meta.deletion_timestamp is not None:
            self._expectations.deleted_seen(owner, meta.name, meta.uid)
        else:
            self._expectations.created_seen(owner, meta.name, meta.uid)

    def _next_look(self, cluster: RayCluster, pods: Sequence[Pod], now: datetime) -> Requeue:
        """When time alone could change the decision, else after the usual while."""
        groups = [labels.HEAD_GROUP, *(group.group_name for group in cluster.spec.worker_group_specs)]
        waits = [self._expectations.seconds_left(GroupKey(cluster.key, group)) for group in groups]
        ends = [pod.ends for pod in pods if pod.ends is not None]
        moments = [end + after for end in ends for after in (LOST_AFTER, STUCK_AFTER)]
        moments += [pod.created + REPLACED_AFTER for pod in pods if pod.has_ended]
        dues = [(moment - now).total_seconds() for moment in moments]
        due = [wait for wait in (*waits, *dues) if wait is not None and wait > 0]
        return Requeue.after(min([self._context.settings.raycluster.requeue_seconds, *(wait + 1 for wait in due)]))


def _first_failure(refusals: Sequence[Refusal]) -> Failure | None:
    return Failure("FailedCreateChild", str(refusals[0])) if refusals else None


def _is_newer(one: Object, other: Object) -> bool:
    """Whether a resource version is higher; Kubernetes promises since 1.35 that they can be compared."""
    versions = (one.metadata.resource_version, other.metadata.resource_version)
    return all(text.isdecimal() for text in versions) and int(versions[0]) > int(versions[1])


def random_end() -> str:
    """Five characters, as in every name that Kubernetes generates."""
    return "".join(random.choices(names.SAFE_ALPHABET, k=5))  # noqa: S311 - a name, not a secret
