"""Carries out what was decided about a RayService. Every write but that of the status is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from raykeeper.api import labels
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.api.raycluster import RAY_CLUSTERS, RayCluster
from raykeeper.api.rayservice import RayService
from raykeeper.api.times import to_time
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import ApiError, NotFound
from raykeeper.kube.events.writer import EventRecorder
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES, PODS
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.rayservice import facts
from raykeeper.operator.rayservice.cluster import appending_patch, desired_cluster
from raykeeper.operator.rayservice.facts import Action, PointServices
from raykeeper.operator.rayservice.observe import REPLACED_AT, ROLLED_BACK, ROLLED_BACK_BECAUSE, Observed
from raykeeper.operator.rayservice.routing import Routing
from raykeeper.operator.rayservice.services import desired_cluster_serve, desired_head, desired_serve
from raykeeper.operator.rayservice.upgrade.routes import Backend
from raykeeper.operator.rayservice.versions import Marks
from raykeeper.operator.shared.children.apply import ChildWriter
from raykeeper.operator.shared.children.drift import Drift
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.plan import ChildAction, CreateChild, DeleteChild, PatchChild, plan_children
from raykeeper.operator.shared.children.service_drift import service_drift
from raykeeper.operator.shared.owner import Owner

SPOKEN: Mapping[str, str] = {}
ChildOrder = (
    facts.CreateCluster
    | facts.AppendGroups
    | facts.SetSuspend
    | facts.DeleteCluster
    | facts.DeleteService
    | facts.DeleteRouting
)
"""Actions that are one write of one child."""


class NotDone(RaykeeperError):
    """Something was refused, and is tried again."""


@dataclass
class Outcome:
    """What came of the actions."""

    refusals: list[str] = field(default_factory=list)
    is_pointed: bool = True
    """The services lead where they should."""


def rayservice_drift(_owner: Owner, desired: JSON, actual: JSON) -> Drift:
    """Services are kept as they should be; a cluster is changed only where that was decided."""
    return service_drift(desired, actual) if desired["kind"] == "Service" else None


class Actor:
    """Does what a plan says. What is refused keeps nothing else from being done."""

    def __init__(self, context: Context, recorder: EventRecorder, version: str, routing: Routing) -> None:
        self._context = context
        self._recorder = recorder
        self._version = version
        self._children = ChildWriter(context.kube, recorder, rayservice_drift, SPOKEN, (GATEWAYS, HTTP_ROUTES))
        self._routing = routing
        self._services = context.informers.cache(kinds.WATCHED_ORIGINATED_SERVICES)

    async def apply(self, service: RayService, spec: JSON, observed: Observed, actions: Sequence[Action]) -> Outcome:
        """One after the other."""
        outcome = Outcome()
        for action in actions:
            try:
                await self._apply(service, spec, observed, action)
            except (ApiError, Unavailable, NotDone) as error:
                outcome.refusals.append(str(error))
                outcome.is_pointed &= not isinstance(action, PointServices)
        return outcome

    async def _apply(self, service: RayService, spec: JSON, observed: Observed, action: Action) -> None:
        match action:
            case facts.AdoptCluster(name, marks):
                await self._annotate(observed, name, marks.annotations())
            case facts.MarkReplaced(name, moment):
                await self._annotate(observed, name, {REPLACED_AT: to_time(moment)})
            case facts.MarkRolledBack():
                await self._roll_back(service, observed, action)
            case facts.NoteConfig(name):
                await self._note_config(service, observed, name)
            case facts.LabelHead(cluster, pod, value):
                await self._label(service, cluster, pod, value)
            case facts.PointServices(name, serve):
                await self._point(service, observed, name, serve or name)
            case facts.RouteTraffic(weights):
                await self._route(service, observed, weights)
            case _:
                await self._write(service, [self._child_action(service, spec["rayClusterConfig"], observed, action)])

    def _child_action(self, service: RayService, config: JSON, observed: Observed, action: ChildOrder) -> ChildAction:
        match action:
            case facts.SetSuspend(name, suspend):
                return PatchChild(ChildKey("RayCluster", name), {"spec": {"suspend": suspend}})
            case facts.DeleteService(name, uid):
                return DeleteChild(ChildKey("Service", name), uid)
            case facts.DeleteCluster(name, uid):
                return DeleteChild(ChildKey("RayCluster", name), uid)
            case facts.DeleteRouting(kind, name, uid):
                return DeleteChild(ChildKey(kind, name), uid)
            case facts.CreateCluster() | facts.AppendGroups():
                return self._cluster_action(service, config, observed, action)

    def _cluster_action(
        self, service: RayService, config: JSON, observed: Observed, action: facts.CreateCluster | facts.AppendGroups
    ) -> ChildAction:
        marks = Marks.for_spec(service.spec.ray_cluster_config, self._version)
        if isinstance(action, facts.CreateCluster):
            starts_small = observed.facts.is_stepwise and bool(service.status.active_service_status.ray_cluster_name)
            return CreateChild(desired_cluster(service, action.name, config, marks, starts_small=starts_small))
        item = observed.items[action.name]
        stored: JSON = msgspec.json.decode(item.spec)
        patch = appending_patch(stored, config, marks, item.metadata.resource_version)
        return PatchChild(ChildKey("RayCluster", action.name), patch)

    async def _write(self, owner: RayService | RayCluster, actions: Sequence[ChildAction]) -> None:
        ledger = await self._children.apply(Owner.of(owner), actions)
        if ledger.refusals:
            raise NotDone(str(ledger.refusals[0])) from ledger.refusals[0]

    async def _annotate(self, observed: Observed, name: str, annotations: Mapping[str, str]) -> None:
        """Marks that only we read; a cluster made anew under the name does not get them."""
        metadata = observed.clusters[name].metadata
        patch = {"metadata": {"uid": metadata.uid, "annotations": dict(annotations)}}
        await self._context.kube.merge_patch(RAY_CLUSTERS, ObjectKey(metadata.namespace, name), patch)

    async def _note_config(self, service: RayService, observed: Observed, name: str) -> None:
        marks, owner = observed.kept_marks(name), Owner.of(service)
        if not marks:
            return
        await self._annotate(observed, name, marks)
        if observed.is_capacity_alone(name):
            note = f"Serve on RayCluster {name} now has {observed.configs[name].capacity} % of its capacity"
            self._recorder.normal(owner.ref(), "UpdatedServeTargetCapacity", note, action="Update")
        else:
            note = f"Serve on RayCluster {name} took the config"
            self._recorder.normal(owner.ref(), "UpdatedServeApplications", note, action="Update")

    async def _label(self, service: RayService, cluster: str, pod: str, value: str) -> None:
        owner, key = Owner.of(service), ObjectKey(service.metadata.namespace, pod)
        try:
            await self._context.kube.merge_patch(PODS, key, {"metadata": {"labels": {labels.SERVE: value}}})
        except NotFound:
            return
        except (ApiError, Unavailable) as error:
            self._recorder.warning(owner.ref(), "FailedToUpdateHeadPodServeLabel", str(error), action="Update")
            raise
        note = f"The head pod {pod} of RayCluster {cluster} now has {labels.SERVE}={value}"
        self._recorder.normal(owner.ref(), "UpdatedHeadPodServeLabel", note, action="Update")

    async def _point(self, service: RayService, observed: Observed, name: str, serve: str) -> None:
        """The head service first: traffic has moved once the serve service leads there."""
        headless = not self._context.settings.raycluster.head_service_has_ip
        head = desired_head(service, observed.clusters[name], headless=headless)
        for desired in (head, desired_serve(service, observed.clusters[serve])):
            await self._keep(service, desired)

    async def _keep(self, owner: RayService | RayCluster, desired: JSON) -> None:
        """A service is there, and as it should be."""
        actual = self._actual(owner, desired)
        await self._write(owner, plan_children(Owner.of(owner), [desired], actual, rayservice_drift, is_in_use=True))

    async def _route(self, service: RayService, observed: Observed, weights: Sequence[tuple[str, int]]) -> None:
        """The services come before the HTTPRoute that names them."""
        backends = []
        for name, weight in weights:
            desired = desired_cluster_serve(service, observed.clusters[name])
            await self._keep(observed.clusters[name], desired)
            ports = tuple(port["port"] for port in desired["spec"]["ports"])
            backends.append(Backend(desired["metadata"]["name"], weight, ports))
        await self._write(service, self._routing.plan_gateway(service))
        if not backends:
            return
        for name in self._routing.route_names(service):
            await self._weigh(service, name, backends)

    async def _weigh(self, service: RayService, name: str, backends: Sequence[Backend]) -> None:
        actions = self._routing.plan_route(service, name, backends)
        if any(isinstance(action, PatchChild) for action in actions):
            # Its controller writes into it all the time, and a list of rules must not be put back as it was before.
            key = ObjectKey(service.metadata.namespace, name)
            live = await self._context.kube.find(HTTP_ROUTES.read_as(dict), key)
            actions = self._routing.plan_route(service, name, backends, live)
        await self._write(service, actions)

    async def _roll_back(self, service: RayService, observed: Observed, action: facts.MarkRolledBack) -> None:
        marks = {ROLLED_BACK: action.goal, ROLLED_BACK_BECAUSE: action.cause}
        await self._annotate(observed, action.name, marks)
        note = f"Traffic goes back to RayCluster {action.name}: {action.cause}"
        self._recorder.warning(Owner.of(service).ref(), "RolledBackUnhealthyUpgrade", note, action="Update")

    def _actual(self, owner: RayService | RayCluster, desired: JSON) -> dict[ChildKey, JSON]:
        found = self._services.get(ObjectKey(owner.metadata.namespace, desired["metadata"]["name"]))
        if found is None or found.controller_uid != owner.metadata.uid:
            return {}
        metadata = {name: getattr(found.metadata, name) for name in ("labels", "annotations", "uid")}
        return {child_key(desired): {"metadata": metadata, "spec": msgspec.json.decode(found.spec or b"{}")}}
