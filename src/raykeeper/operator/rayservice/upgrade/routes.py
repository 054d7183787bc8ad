"""The Gateway and the HTTPRoute in front of a RayService: how they should be, and what they say. Pure.

Of an HTTPRoute only the references to the services of our clusters are ours, weights and all. Hostnames, matches,
filters, time-outs, other rules and other backends are whose they are, whoever made the HTTPRoute.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from raykeeper.api import containers, labels
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.names import SAFE_ALPHABET
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.kube.resources import GATEWAYS, HTTP_ROUTES
from raykeeper.operator.rayservice.services import serve_service_name
from raykeeper.operator.rayservice.upgrade.options import attached_route_name
from raykeeper.operator.shared.children.drift import Patch
from raykeeper.operator.shared.children.metadata import child_metadata
from raykeeper.operator.shared.owner import Owner

LISTENER: Final = "http"
LONGEST_CAUSE: Final = 500
"""Characters of what a Gateway's controller says."""
SERVE_SERVICE_END: Final = "-serve-svc"
RANDOM_END: Final = re.compile(rf"-[{SAFE_ALPHABET}]{{5}}\Z")
"""What a cluster's name has in addition to that of its RayService. It has no vowels, so that the service of another
RayService in the same HTTPRoute, `web-large` beside `web`, is not taken for one of its clusters."""


def gateway_name(service: RayService) -> str:
    return f"{service.metadata.name}-gateway"


def route_name(service: RayService) -> str:
    """The HTTPRoute that carries the traffic."""
    return attached_route_name(service) or own_route_name(service)


def own_route_name(service: RayService) -> str:
    return f"{service.metadata.name}-httproute"


def cluster_service_name(cluster: str) -> str:
    """The service that leads to Ray Serve on one cluster."""
    return f"{cluster}{SERVE_SERVICE_END}"


def cluster_of(service: str, backend: str) -> str:
    """The cluster of a RayService that a backend leads to; empty where it leads elsewhere."""
    name = backend.removesuffix(SERVE_SERVICE_END)
    is_ours = name != backend and name.startswith(service) and RANDOM_END.fullmatch(name[len(service) :])
    return name if is_ours else ""


@dataclass(frozen=True)
class Backend:
    """A service that gets a part of the traffic."""

    service: str
    weight: int
    ports: tuple[int, ...]
    """On which Ray Serve answers, the usual one first."""


def desired_gateway(service: RayService, class_name: str) -> JSON:
    """One listener for plain HTTP; the user may add others."""
    spec = {
        "gatewayClassName": class_name,
        "listeners": [{"name": LISTENER, "port": containers.GATEWAY_LISTENER_PORT, "protocol": "HTTP"}],
    }
    metadata = child_metadata(Owner.of(service), gateway_name(service), _labels(service))
    return {"apiVersion": GATEWAYS.api_version, "kind": GATEWAYS.kind, "metadata": metadata, "spec": spec}


def desired_route(service: RayService, backends: Sequence[Backend]) -> JSON:
    """All paths, from our Gateway to the clusters."""
    parent = {"group": GATEWAYS.group, "kind": GATEWAYS.kind, "name": gateway_name(service)}
    rules = [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]
    spec = {"parentRefs": [parent], "rules": weighted_rules(service, rules, backends)}
    metadata = child_metadata(Owner.of(service), own_route_name(service), _labels(service))
    return {"apiVersion": HTTP_ROUTES.api_version, "kind": HTTP_ROUTES.kind, "metadata": metadata, "spec": spec}


def _labels(service: RayService) -> dict[str, str]:
    return {
        labels.ORIGINATED_FROM_CR_NAME: service.metadata.name,
        labels.ORIGINATED_FROM_CRD: RAY_SERVICES.kind,
    }


def gateway_drift(desired: JSON, actual: JSON) -> Patch | None:
    """Another class. Listeners are the user's once they are there."""
    class_name = desired["spec"]["gatewayClassName"]
    is_same = actual["spec"].get("gatewayClassName") == class_name
    return None if is_same else Patch({"spec": {"gatewayClassName": class_name}})


def route_drift(service: RayService, actual: JSON, backends: Sequence[Backend], *, is_attached: bool) -> Patch | None:
    """Other weights, or a Gateway of ours that it does not name. Written only to what was looked at: rules are a list,
    and what somebody adds to it meanwhile must not be lost.
    """
    spec: JSON = actual["spec"]
    patch: JSON = {}
    rules = weighted_rules(service, spec.get("rules") or [], backends)
    if rules != (spec.get("rules") or []):
        patch["rules"] = rules
    parents = spec.get("parentRefs") or []
    if not is_attached and not any(parent.get("name") == gateway_name(service) for parent in parents):
        patch["parentRefs"] = [*parents, *desired_route(service, backends)["spec"]["parentRefs"]]
    if not patch:
        return None
    return Patch({"metadata": {"resourceVersion": actual["metadata"]["resourceVersion"]}, "spec": patch})


def weighted_rules(service: RayService, rules: Sequence[JSON], backends: Sequence[Backend]) -> list[JSON]:
    """The rules with our backends where these have a place; the others as they are."""
    found = [copy.deepcopy(rule) for rule in rules] or [{}]
    for rule in _places(service, found):
        rule["backendRefs"] = _with_ours(service, rule.get("backendRefs") or (), backends)
    return found


def _places(service: RayService, rules: Sequence[JSON]) -> Sequence[JSON]:
    """The rules in which our backends stand: those that have some, else the first that leads nowhere yet."""
    ours = [rule for rule in rules if any(_is_ours(service, one) for one in rule.get("backendRefs") or ())]
    return ours or [rule for rule in rules if _leads_nowhere(rule)][:1]


def _leads_nowhere(rule: JSON) -> bool:
    is_redirect = any(one.get("type") == "RequestRedirect" for one in rule.get("filters") or ())
    return not rule.get("backendRefs") and not is_redirect


def _with_ours(service: RayService, present: Sequence[JSON], backends: Sequence[Backend]) -> list[JSON]:
    """Ours stand where the first of ours stood. Each keeps what the user said about it, and a new one inherits that."""
    ours = {one["name"]: one for one in present if _is_ours(service, one)}
    first = next(iter(ours.values()), {"group": "", "kind": "Service"})
    written = [_reference(ours.get(backend.service, first), backend) for backend in backends]
    place = next((number for number, one in enumerate(present) if _is_ours(service, one)), 0)
    others = [one for one in present if not _is_ours(service, one)]
    return [*others[:place], *written, *others[place:]]


def _reference(pattern: JSON, backend: Backend) -> JSON:
    port = pattern.get("port") if pattern.get("port") in backend.ports else backend.ports[0]
    return {**copy.deepcopy(pattern), "name": backend.service, "port": port, "weight": backend.weight}


def _is_ours(service: RayService, reference: JSON) -> bool:
    """Also the service in front of the cluster that serves, by which a user says where our backends should stand."""
    name, namespace = reference.get("name", ""), reference.get("namespace") or service.metadata.namespace
    is_service = reference.get("kind", "Service") == "Service" and not reference.get("group")
    is_named = name == serve_service_name(service) or bool(cluster_of(service.metadata.name, name))
    return is_service and is_named and bool(namespace == service.metadata.namespace)


def weights_of(service: RayService, route: JSON) -> dict[str, int]:
    """The weights of our clusters, in the first rule that has some; those of the other rules are the same."""
    for rule in route["spec"].get("rules") or ():
        references = [one for one in rule.get("backendRefs") or () if _is_ours(service, one)]
        if references:
            name = service.metadata.name
            return {cluster_of(name, one["name"]): one.get("weight", 1) for one in references}
    return {}


@dataclass(frozen=True)
class RoutingFacts:
    """What is there of Gateway and HTTPRoute."""

    is_wanted: bool = False
    """Traffic comes through them."""
    waits: str = ""
    """Why traffic does not go as it should, in the words of whoever holds it up; empty: it does."""
    weights: Mapping[str, int] = field(default_factory=dict)
    """What the HTTPRoute gives our clusters."""
    owned: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Those that we made: uids by kind and name."""


def gateway_trouble(gateway: JSON | None, name: str) -> str:
    """Why the Gateway does not work; empty: it does."""
    if gateway is None:
        return f"Gateway {name} is not there yet"
    return _trouble(f"Gateway {name}", gateway, gateway.get("status") or {}, ("Accepted", "Programmed"))


def route_trouble(service: RayService, route: JSON | None, gateway: str) -> str:
    """Why the HTTPRoute, as it is now, was not taken by `gateway` (any, where that is empty); empty: it was."""
    name = route_name(service)
    if route is None:
        return f"HTTPRoute {name} is not there"
    if not _places(service, route["spec"].get("rules") or [{}]):
        cure = f"write {serve_service_name(service)} as a backend where it should lead here"
        return f"HTTPRoute {name} leads elsewhere: {cure}"
    parents = [
        parent
        for parent in (route.get("status") or {}).get("parents") or ()
        if gateway in ("", (parent.get("parentRef") or {}).get("name"))
    ]
    if not parents:
        return f"no Gateway has taken HTTPRoute {name} yet"
    troubles = [_trouble(f"HTTPRoute {name}", route, parent, ("Accepted", "ResolvedRefs")) for parent in parents]
    return min(troubles, key=bool)


def _trouble(what: str, item: JSON, status: Mapping[str, Any], needed: Iterable[str]) -> str:
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    for kind in needed:
        found = conditions.get(kind) or {}
        if found.get("status") != "True":
            cause = found.get("message") or found.get("reason") or "its controller has not said so"
            return f"{what} is not {kind}: {str(cause)[:LONGEST_CAUSE]}"
        if found.get("observedGeneration", 0) < item["metadata"].get("generation", 0):
            return f"{what} was changed, and its controller has not taken that yet"
    return ""


def carried_services(item: Object) -> Iterable[ObjectKey]:
    """The RayServices whose traffic an HTTPRoute may carry, by the names of its backends: a user's own has no owner."""
    spec = msgspec.json.decode(item.spec or b"{}")
    references = [one for rule in spec.get("rules") or () for one in rule.get("backendRefs") or ()]
    for backend in {str(one.get("name", "")) for one in references}:
        name = backend.removesuffix(SERVE_SERVICE_END)
        if name != backend:
            yield ObjectKey(item.metadata.namespace, name)
            yield ObjectKey(item.metadata.namespace, RANDOM_END.sub("", name))
