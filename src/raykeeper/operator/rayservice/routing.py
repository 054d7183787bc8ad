"""Gateway and HTTPRoute in front of a RayService: read from caches, and planned. Only where the API server has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.rayservice import RayService
from raykeeper.kube.informers.cache import Cache
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.rayservice.upgrade.options import attached_route_name, is_incremental
from raykeeper.operator.rayservice.upgrade.routes import (
    Backend,
    RoutingFacts,
    desired_gateway,
    desired_route,
    gateway_drift,
    gateway_name,
    gateway_trouble,
    own_route_name,
    route_drift,
    route_name,
    route_trouble,
    weights_of,
)
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.children.plan import ChildAction, CreateChild, PatchChild


class Routing:
    """The two kinds of the Gateway API that are watched."""

    def __init__(self, context: Context) -> None:
        self.is_served = context.api_server.has_gateway_api
        self._gateways = self._cache(context, kinds.WATCHED_GATEWAYS)
        self._routes = self._cache(context, kinds.WATCHED_HTTP_ROUTES)

    def _cache(self, context: Context, kind: Any) -> Cache[Object] | None:
        return context.informers.cache(kind) if self.is_served else None

    def observe(self, service: RayService) -> RoutingFacts:
        """What is there, and whether traffic goes as the HTTPRoute says."""
        gateway, route = self._gateway(service), self._route(service)
        own = _found(self._routes, service, own_route_name(service))
        owned = {(GATEWAYS.kind, gateway_name(service)): gateway, (HTTP_ROUTES.kind, own_route_name(service)): own}
        uids = {key: one["metadata"]["uid"] for key, one in owned.items() if one and _is_owned(service, one)}
        attached = attached_route_name(service)
        # A strategy without steps does not take the way in from outside away: requests come through it.
        is_wanted = self.is_served and (is_incremental(service) or bool(attached) or bool(uids))
        waits = "" if attached else gateway_trouble(gateway, gateway_name(service))
        waits = waits or route_trouble(service, route, "" if attached else gateway_name(service))
        return RoutingFacts(is_wanted, waits if is_wanted else "", weights_of(service, route) if route else {}, uids)

    def plan_gateway(self, service: RayService) -> list[ChildAction]:
        """What makes the Gateway as it should be."""
        strategy = service.spec.upgrade_strategy
        options = strategy.cluster_upgrade_options if strategy else None
        if attached_route_name(service) or options is None or not is_incremental(service):
            return []
        desired, found = desired_gateway(service, options.gateway_class_name), self._gateway(service)
        if found is None or not _is_owned(service, found):
            return [CreateChild(desired)]
        drift = gateway_drift(desired, found)
        return [PatchChild(ChildKey(GATEWAYS.kind, gateway_name(service)), drift.body)] if drift else []

    def route_names(self, service: RayService) -> list[str]:
        """The HTTPRoutes in which weights are kept. One that we made before the user named his own is kept, too, until
        somebody deletes it: requests may still come through it.
        """
        own = _found(self._routes, service, own_route_name(service))
        is_left = bool(attached_route_name(service)) and own is not None and _is_owned(service, own)
        return [route_name(service), *([own_route_name(service)] if is_left else [])]

    def plan_route(
        self, service: RayService, name: str, backends: Sequence[Backend], live: JSON | None = None
    ) -> list[ChildAction]:
        """What makes an HTTPRoute as it should be: the one in the cache, or the one that was just read."""
        found, is_attached = live or _found(self._routes, service, name), name == attached_route_name(service)
        if is_attached and found is None:
            return []
        if found is None or not (is_attached or _is_owned(service, found)):
            return [CreateChild(desired_route(service, backends))]
        drift = route_drift(service, found, backends, is_attached=is_attached)
        return [PatchChild(ChildKey(HTTP_ROUTES.kind, name), drift.body)] if drift else []

    def _gateway(self, service: RayService) -> JSON | None:
        return _found(self._gateways, service, gateway_name(service))

    def _route(self, service: RayService) -> JSON | None:
        return _found(self._routes, service, route_name(service))


def _found(cache: Cache[Object] | None, service: RayService, name: str) -> JSON | None:
    item = cache.get(ObjectKey(service.metadata.namespace, name)) if cache is not None else None
    if item is None or item.metadata.deletion_timestamp is not None:
        return None
    metadata = msgspec.to_builtins(item.metadata)
    return {"metadata": metadata, "spec": _part(item.spec), "status": _part(item.status)}


def _part(raw: msgspec.Raw) -> JSON:
    found: JSON = msgspec.json.decode(raw or b"{}")
    return found


def _is_owned(service: RayService, item: JSON) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one["uid"] == service.metadata.uid for one in owners)
