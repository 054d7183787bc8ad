"""Moves one RayService on: read, decide, act, say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version

import msgspec

from raykeeper.api import labels
from raykeeper.api.conditions import find_condition, is_true
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.rayservice import RAY_SERVICES, RayService, RayServiceSpec, RayServiceStatuses
from raykeeper.api.structs import parse_part
from raykeeper.kube.controllers.requeue import Requeue
from raykeeper.operator.context import Context
from raykeeper.operator.kinds import WATCHED_RAYSERVICES
from raykeeper.operator.rayservice.apply import Actor, NotDone
from raykeeper.operator.rayservice.conditions import refused
from raykeeper.operator.rayservice.facts import AdoptCluster, Phase, Plan
from raykeeper.operator.rayservice.observe import Observed, Observer
from raykeeper.operator.rayservice.plan import plan
from raykeeper.operator.rayservice.routing import Routing
from raykeeper.operator.rayservice.states import INITIALIZING_TIMEOUT, READY, SUSPENDED, SUSPENDING
from raykeeper.operator.rayservice.status import linked, refused_status, status_of, without_promotion
from raykeeper.operator.rayservice.validation import violations
from raykeeper.operator.shared.finalizers import remove_finalizer
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.history_of_owners import OwnersHistory
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.status import StatusWriter
from raykeeper.operator.shared.violations import Violation, invalid_spec

NAME = "rayservice-controller"


class RayServiceReconciler:
    """Safe at any time, any number of times, after any crash."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = context.recorder(NAME)
        self._status = StatusWriter(context.kube, RAY_SERVICES, context.informers.cache(WATCHED_RAYSERVICES))
        operator_version = f"raykeeper-{version('raykeeper')}"
        routing = Routing(context)
        self._observer = Observer(context, operator_version, routing)
        self._actor = Actor(context, self._recorder, operator_version, routing)
        history = History(context.settings.history)
        self._history_url = history.url
        self._history = OwnersHistory(context.kube, self._recorder, history)

    async def __call__(self, key: ObjectKey) -> Requeue:
        item = self._status.current(key)
        if item is None:
            self._observer.forget(key)
            return Requeue.never()
        try:
            service = RayService.from_object(item)
        except msgspec.ValidationError as error:
            return await self._refuse_unreadable(item, str(error))
        if service.spec.managed_by not in (None, "", labels.MANAGED_BY_KUBERAY):
            self._observer.forget(key)
            return Requeue.never()
        if service.metadata.deletion_timestamp is not None:
            return await self._let_go(item)
        has_gateway_api = self._context.api_server.has_gateway_api
        broken = violations(service, self._context.settings.gates, has_gateway_api=has_gateway_api)
        if broken and not self._has_begun(service):
            return await self._refuse(service, item, broken)
        return await self._advance(service, item, broken)

    async def _advance(self, service: RayService, item: Object, broken: Sequence[Violation]) -> Requeue:
        """One step. A spec that was edited into nonsense does not stop what runs."""
        invalid = self._warn(service, broken) if broken else ""
        observed = self._observer.observe(service, is_valid=not broken)
        now = self._context.clock.now()
        planned = plan(service, observed.facts, now)
        outcome = await self._actor.apply(service, _spec(item), observed, planned.actions)
        done = planned if outcome.is_pointed else without_promotion(service, planned)
        is_adopting = any(isinstance(action, AdoptCluster) for action in planned.actions)
        refusal = next(iter(outcome.refusals), "")
        status = status_of(service, observed.facts, done, invalid, now, is_adopting=is_adopting, refusal=refusal)
        owner, spec = Owner.of(service), service.spec.ray_cluster_config
        status = self._history.told(owner, spec, status, service.metadata.generation, now)
        status = linked(status, partial(self._history_url, service.metadata.namespace))
        await self._status.write(item, service.status, status)
        await self._history.pass_on(owner, observed.clusters.values())
        self._tell(service, observed, done)
        if outcome.refusals:
            raise NotDone(f"RayService {service.key}: {outcome.refusals[0]}")
        return Requeue.at(planned.look_at)

    def _tell(self, service: RayService, observed: Observed, done: Plan) -> None:
        """Events about what is no write of ours."""
        ref = Owner.of(service).ref()
        for cluster in observed.facts.clusters.values():
            if cluster.serve.refusal:
                note = f"RayCluster {cluster.name}: {cluster.serve.refusal}"
                what = "TargetCapacity" if observed.is_capacity_alone(cluster.name) else "ServeApplications"
                self._recorder.warning(ref, f"FailedToUpdate{what}", note, action="Update")
        ready = find_condition(service.status.conditions, READY)
        if done.phase is Phase.TIMED_OUT and ready is not None and ready.reason != INITIALIZING_TIMEOUT:
            note = f"It did not serve within {service.metadata.annotations[labels.INITIALIZING_TIMEOUT]}"
            self._recorder.warning(ref, "RayServiceInitializingTimeout", note, action="Reconcile")

    async def _let_go(self, item: Object) -> Requeue:
        """Its clusters and services go with it, by their owner references. KubeRay 1.7 puts a finalizer on it."""
        self._observer.forget(item.key)
        await remove_finalizer(self._context.kube, RAY_SERVICES, item.metadata, labels.RAYSERVICE_FINALIZER)
        return Requeue.never()

    def _has_begun(self, service: RayService) -> bool:
        """Whether something was made of it, or is being undone."""
        is_suspended = any(is_true(service.status.conditions, kind) for kind in (SUSPENDING, SUSPENDED))
        return is_suspended or self._observer.has_clusters(service.metadata.uid)

    async def _refuse(self, service: RayService, item: Object, broken: Sequence[Violation]) -> Requeue:
        """Say what is wrong and make nothing until the spec changes."""
        self._observer.forget(service.key)
        now = self._context.clock.now()
        told = refused(service, self._warn(service, broken), now)
        await self._status.write(item, service.status, refused_status(service, told, now))
        return Requeue.never()

    def _warn(self, service: RayService, broken: Sequence[Violation]) -> str:
        message = invalid_spec(RAY_SERVICES.kind, broken).message
        self._recorder.warning(Owner.of(service).ref(), broken[0].reason(RAY_SERVICES.kind), message, action="Validate")
        return message

    async def _refuse_unreadable(self, item: Object, cause: str) -> Requeue:
        """A spec that the CRD of another version let pass; its status alone can be read."""
        if item.metadata.deletion_timestamp is not None:
            return await self._let_go(item)
        empty = msgspec.convert({"rayClusterConfig": {"headGroupSpec": {"template": {}}}}, RayServiceSpec)
        service = RayService(item.metadata, empty, parse_part(item.status, RayServiceStatuses))
        broken = [Violation("spec", "cannot be read", cause)]
        if not self._has_begun(service):
            return await self._refuse(service, item, broken)
        self._warn(service, broken)
        return Requeue.never()


def _spec(item: Object) -> JSON:
    """The spec as the user wrote it."""
    found: JSON = msgspec.json.decode(item.spec or b"{}")
    return found
