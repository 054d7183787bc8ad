"""Moves one RayCluster towards its spec: read, decide, act, say."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version

from raykeeper.api import labels, names
from raykeeper.api.conditions import is_true
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS, SCHEDULED, SUSPENDING, RayCluster, RayClusterSpec, RayClusterStatus
from raykeeper.kube.controllers.expectations import Expectations
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.kube.errors import ApiError, Forbidden, Invalid
from raykeeper.kube.resources import SERVICE_ACCOUNTS, SERVICES
from raykeeper.operator.context import Context
from raykeeper.operator.gates import Gate
from raykeeper.operator.kinds import WATCHED_PODS, WATCHED_RAYCLUSTERS
from raykeeper.operator.raycluster.actions import CreateHead, CreateWorker
from raykeeper.operator.raycluster.apply import GroupKey, PodFactory, PodWriter
from raykeeper.operator.raycluster.children.auth_secret import TOKEN_BYTES
from raykeeper.operator.raycluster.children.desired import (
    ChildSettings,
    child_drift,
    child_problems,
    desired_children,
    is_needed_by_pods,
)
from raykeeper.operator.raycluster.children.history_account import history_keys, replaced_accounts
from raykeeper.operator.raycluster.children.obsolete import obsolete_children
from raykeeper.operator.raycluster.children.requirements import requirements
from raykeeper.operator.raycluster.deletion import Deletion
from raykeeper.operator.raycluster.history_condition import history_finding
from raykeeper.operator.raycluster.next_look import gang_look, next_look
from raykeeper.operator.raycluster.observe import Observed, Observer
from raykeeper.operator.raycluster.plan import ACTIONS_A_PASS, Facts, plan_pods
from raykeeper.operator.raycluster.pod import HEAD_POD, Pod
from raykeeper.operator.raycluster.pods.defaults import PodDefaults
from raykeeper.operator.raycluster.pods.desired import desired_head_pod, desired_worker_pod
from raykeeper.operator.raycluster.pods.metadata import head_marks
from raykeeper.operator.raycluster.progress import Progress
from raykeeper.operator.raycluster.reading import read_cluster
from raykeeper.operator.raycluster.recent import RecentPods
from raykeeper.operator.raycluster.status import (
    Failure,
    Outcome,
    Scheduling,
    invalid_status,
    status_of,
    without_conditions,
)
from raykeeper.operator.raycluster.validation.validate import violations, warnings
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import Wait
from raykeeper.operator.schedulers.pod_groups import plan_gang
from raykeeper.operator.shared.children.apply import ChildLedger, ChildWriter, Refusal
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.children.plan import ChildAction, plan_children
from raykeeper.operator.shared.history import NOT_CONFIGURED, History, without_history
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.random_names import random_end
from raykeeper.operator.shared.spec_hash import spec_hash
from raykeeper.operator.shared.status import StatusWriter
from raykeeper.operator.shared.violations import Violation, invalid_spec

NAME = "raycluster-controller"
NATIVE_SIDECARS_SINCE = (1, 29)
UNFINISHED_SECONDS = 0.5
"""Until a plan that was longer than a pass may be goes on; by then the watch has shown what was done."""


class RayClusterReconciler:
    """Safe at any time, any number of times, after any crash."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = context.recorder(NAME)
        self._statuses = StatusWriter(context.kube, RAY_CLUSTERS, context.informers.cache(WATCHED_RAYCLUSTERS))
        self._observer = Observer(context.informers, context.api_server)
        self._expectations: Expectations[GroupKey] = Expectations(context.clock)
        self._recent = RecentPods(lambda key, group: self._expectations.satisfied(GroupKey(key, group)))
        self._progress = Progress(context.clock)
        self._has_conditions = context.settings.gates.is_on(Gate.STATUS_CONDITIONS)
        self._version = f"raykeeper-{version('raykeeper')}"
        self._history = History(context.settings.history)
        has_native_sidecars = context.api_server.kubernetes >= NATIVE_SIDECARS_SINCE
        self._pod_defaults = PodDefaults(self._version, context.settings.pods, has_native_sidecars, self._history)
        self._children = ChildWriter(context.kube, self._recorder, child_drift, more_kinds=context.scheduler.kinds)
        self._pods = PodWriter(context.kube, self._factory(), self._expectations, self._recorder)
        self._deletion = Deletion(context, self._recorder, self._pod_defaults)
        context.informers.of(WATCHED_PODS).on_change(self._note_pod)

    async def __call__(self, key: ObjectKey) -> Requeue:
        item = self._statuses.current(key)
        if item is None:
            self._forget(key)
            return Requeue.never()  # owner references collect the children
        cluster, unreadable = read_cluster(item)
        if not self._has_conditions:
            cluster = without_conditions(cluster)
        if cluster.spec.managed_by not in (None, "", labels.MANAGED_BY_KUBERAY):
            return Requeue.never()
        # Before the caches: what is shown between the two would count as settled, and be missing from what was read.
        unsettled = [group for group in _groups(cluster) if not self._expectations.satisfied(GroupKey(key, group))]
        observed = self._observer.observe(cluster)
        observed = replace(observed, pods=self._recent.overlay(cluster, observed.pods), unsettled=tuple(unsettled))
        if cluster.metadata.deletion_timestamp is not None:
            return await self._deletion.advance(cluster, observed)
        if broken := unreadable or self._violations(cluster):
            return await self._refuse(cluster, item, broken)
        unguarded = await self._deletion.prepare(cluster)
        return await self._reconcile(cluster, item, observed, [unguarded] if unguarded else [])

    def _violations(self, cluster: RayCluster) -> list[Violation]:
        found = violations(cluster, self._context.settings.gates, self._context.api_server)
        return [*found, *self._context.scheduler.violations(Owner.of(cluster))]

    async def _reconcile(
        self, cluster: RayCluster, item: Object, observed: Observed, lacking: Sequence[Refusal]
    ) -> Requeue:
        """One pass over a valid cluster: children, then pods, then what is to be said about it.

        `lacking`: what was refused already, and no pod is made without.
        """
        regarding = Owner.of(cluster).ref()
        for warning in [*warnings(cluster), *self._context.scheduler.warnings(Owner.of(cluster))]:
            self._recorder.warning(regarding, warning.reason(regarding.kind), str(warning), action="Validate")
        if problem := self._history.problem_of(cluster.spec, cluster.metadata.annotations):
            self._recorder.warning(regarding, NOT_CONFIGURED, problem, action="Validate")
        children, now = await self._apply_children(cluster, observed), self._context.clock.now()
        refusal = self._without_account(cluster, children)
        refusals = [*lacking, *children.refusals]
        lacking = [
            *lacking,
            *(error for key, error in children.missing.items() if is_needed_by_pods(cluster, key)),
        ]
        actions = plan_pods(cluster, observed.pods, self._facts(cluster, observed, now))
        if lacking:  # pods would be made in vain; those that should go, go
            actions = [action for action in actions if not isinstance(action, CreateHead | CreateWorker)]
        ledger = await self._pods.apply(without_history(cluster) if refusal else cluster, actions)
        pods = ledger.after(observed.pods, now)
        self._recent.remember(cluster, ledger.touched(pods))
        head_service = ChildKey(SERVICES.kind, names.head_service_name(cluster))
        outcome = Outcome(
            pods,
            observed.children.get(head_service) or children.made.get(head_service),
            _first_failure(lacking) or ledger.failure,
            now,
            str(refusals[0]) if refusals else "",
            self._scheduling(observed),
            history_finding(cluster, pods, self._history, refusal),
            self._has_conditions,
        )
        status = status_of(cluster, outcome)
        held_seconds = await self._say(cluster, item, status)
        if errors := [*refusals, *ledger.errors]:
            raise ExceptionGroup(f"RayCluster {cluster.key} is not as it should be yet", errors)
        if is_true(status.conditions, SUSPENDING) and not is_true(cluster.status.conditions, SUSPENDING):
            return Requeue.now()  # the status says so now: pods may go
        if len(actions) >= ACTIONS_A_PASS:
            return Requeue.after(UNFINISHED_SECONDS)
        if held_seconds:
            return Requeue.after(held_seconds)
        scheduling = None if is_true(status.conditions, SCHEDULED) else outcome.scheduling
        return self._next_look(cluster, observed.pods, scheduling.wait if scheduling else None, now)

    async def _apply_children(self, cluster: RayCluster, observed: Observed) -> ChildLedger:
        settings = self._context.settings.raycluster
        uses_routes = self._context.api_server.is_openshift and not settings.uses_ingress_on_openshift
        wanted = ChildSettings(not settings.head_service_has_ip, uses_routes, self._history)
        pull_secrets = await self._pull_secrets(cluster, observed)
        children = desired_children(cluster, wanted, secrets.token_bytes(TOKEN_BYTES), pull_secrets)
        owner, usage = Owner.of(cluster), observed.usage
        for problem in child_problems(owner, children, observed.children):
            self._recorder.warning(owner.ref(), problem.reason, problem.message, action="Create")
        actions = plan_children(
            owner,
            children.desired,
            observed.children,
            child_drift,
            obsolete=obsolete_children(cluster, children, observed.children, usage),
            is_in_use=usage.has_pods,
        )
        ledger = await self._children.apply(owner, [*actions, *self._plan_gang(cluster, observed)])
        if not observed.has_head and not cluster.spec.suspend:
            await self._children.look_for(owner, requirements(cluster, self._history), ledger)
        return ledger

    async def _pull_secrets(self, cluster: RayCluster, observed: Observed) -> list[JSON]:
        """What the accounts pull images by that the one for the history takes the place of, if that must be made."""
        if all(key in observed.children for key in history_keys(cluster, self._history)):
            return []
        found: dict[str, JSON] = {}
        for name in replaced_accounts(cluster):
            key = ObjectKey(cluster.metadata.namespace, name)
            try:
                account = await self._context.kube.find(SERVICE_ACCOUNTS.read_as(dict), key)
            except ApiError:
                continue  # without the right to look, the account is made without them
            found |= {secret["name"]: secret for secret in (account or {}).get("imagePullSecrets") or ()}
        return list(found.values())

    def _without_account(self, cluster: RayCluster, children: ChildLedger) -> str:
        """Why pods are made without their history: its account was refused. That is no failure of the cluster."""
        keys = [key for key in history_keys(cluster, self._history) if key in children.missing]
        refused = {key: children.missing[key] for key in keys}
        if not all(isinstance(error, Forbidden | Invalid) for error in refused.values()):
            return ""  # all else is waited out
        for key, error in refused.items():
            del children.missing[key]
            children.refusals.remove(error)
        return "; ".join(map(str, refused.values()))

    def _scheduling(self, observed: Observed) -> Scheduling | None:
        scheduler = self._context.scheduler
        if not scheduler.name:
            return None
        return Scheduling(scheduler.waits(observed.gang))

    def _counted_spec(self, cluster: RayCluster) -> RayClusterSpec:
        """With all that its pods will ask for."""
        return self._history.with_collector(cluster.spec, cluster.metadata.annotations)

    def _plan_gang(self, cluster: RayCluster, observed: Observed) -> list[ChildAction]:
        is_suspended = bool(cluster.spec.suspend)
        gang = Gang(Owner.of(cluster), None if is_suspended else self._counted_spec(cluster))
        return plan_gang(self._context.scheduler, gang, observed.children, is_at_rest=is_suspended)

    async def _refuse(self, cluster: RayCluster, item: Object, broken: Sequence[Violation]) -> Requeue:
        """Say what is wrong, in a condition and an event, and leave everything as it is until the spec changes."""
        error = invalid_spec(RAY_CLUSTERS.kind, broken)
        failure = Failure(error.reason, error.message)
        self._recorder.warning(Owner.of(cluster).ref(), failure.reason, failure.message, action="Validate")
        if self._has_conditions:
            status = invalid_status(cluster, failure, self._context.clock.now())
            await self._statuses.write(item, cluster.status, status)
        return Requeue.never()

    async def _say(self, cluster: RayCluster, item: Object, status: RayClusterStatus) -> float:
        """Write the status, unless it can wait; returns how many seconds it waits."""
        seconds = self._progress.seconds_to_wait(cluster, status)
        if not seconds:
            await self._statuses.write(item, cluster.status, status)
        return seconds

    def _forget(self, key: ObjectKey) -> None:
        """The cluster is gone."""
        self._recent.forget(key)
        self._progress.forget(key)
        self._expectations.forget_all(lambda owner: owner.cluster == key)

    def _facts(self, cluster: RayCluster, observed: Observed, now: datetime) -> Facts:
        settings = self._context.settings
        return Facts(
            now=now,
            unsettled=observed.unsettled,
            recreate_hash=spec_hash(cluster.spec),
            version=self._version,
            may_shrink_autoscaled=settings.raycluster.may_shrink_autoscaled_groups,
            has_indexes=settings.gates.is_on(Gate.MULTI_HOST_INDEXING),
            new_name=random_end,
            commits_suspension=self._has_conditions,
        )

    def _factory(self) -> PodFactory:
        defaults, scheduler = self._pod_defaults, self._context.scheduler

        def head(cluster: RayCluster) -> JSON:
            pod = desired_head_pod(cluster, defaults, random_end())
            return scheduler.dress(Gang(Owner.of(cluster), self._counted_spec(cluster)), pod, labels.HEAD_GROUP)

        def worker(cluster: RayCluster, action: CreateWorker) -> JSON:
            group = next(one for one in cluster.spec.worker_group_specs if one.group_name == action.group)
            pod = desired_worker_pod(cluster, group, defaults, action.slot, random_end())
            return scheduler.dress(Gang(Owner.of(cluster), self._counted_spec(cluster)), pod, action.group)

        def marks(cluster: RayCluster) -> dict[str, str]:
            return head_marks(cluster, self._version)

        return PodFactory(head, worker, marks)

    def _note_pod(self, old: Object | None, new: Object | None) -> None:
        """Lower the expectations of the group whose pod appeared, or is going."""
        pod = new or old
        if pod is None:
            return
        meta = pod.metadata
        cluster = ObjectKey(meta.namespace, meta.labels.get(labels.CLUSTER, ""))
        is_head = meta.labels.get(labels.NODE_TYPE) == labels.HEAD
        owner = GroupKey(cluster, HEAD_POD if is_head else meta.labels.get(labels.GROUP, ""))
        is_going = new is None or meta.deletion_timestamp is not None
        self._recent.shown(cluster, meta.uid, is_going=is_going)
        if is_going:
            self._expectations.deleted_seen(owner, meta.name, meta.uid)
        else:
            self._expectations.created_seen(owner, meta.name, meta.uid)

    def _next_look(self, cluster: RayCluster, pods: Sequence[Pod], wait: Wait | None, now: datetime) -> Requeue:
        waits = [self._expectations.seconds_left(GroupKey(cluster.key, group)) for group in _groups(cluster)]
        waits.append(gang_look(cluster, wait))
        usual_seconds = self._context.settings.raycluster.requeue_seconds
        return next_look(pods, waits, now, usual_seconds, random.random())  # noqa: S311 - a moment, not a secret


def _groups(cluster: RayCluster) -> list[str]:
    """What pods of the cluster are tracked as."""
    return [HEAD_POD, *(group.group_name for group in cluster.spec.worker_group_specs)]


def _first_failure(refusals: Sequence[Refusal]) -> Failure | None:
    return Failure("FailedCreateChild", str(refusals[0])) if refusals else None
