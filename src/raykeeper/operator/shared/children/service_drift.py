"""What became of a service since it was made, told apart from what the API server filled in."""

from __future__ import annotations

from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.kube.merge import merge_patch_between
from raykeeper.operator.shared.children.drift import Drift, Replace, drift, overlay
from raykeeper.operator.shared.services import CLUSTER_IP, HEADLESS

COMPARED_BY_THEMSELVES: Final = frozenset({"selector", "ports", "type", "clusterIP", "clusterIPs"})
TYPES_WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def service_drift(desired: JSON, actual: JSON) -> Drift:
    """The way back to selector, ports, type and every other field that is asked for.

    Left alone: the address, node ports and all that the API server or a cloud fills in. A service with an address that
    should have none keeps it while pods run, since they are connected through it: so a cluster of an older KubeRay,
    whose head services had addresses, is taken over without harm.
    """
    wanted, found = desired["spec"], actual["spec"]
    if _gives_up_its_address(wanted, found):
        left = {key: value for key, value in wanted.items() if key != "publishNotReadyAddresses"}
        meanwhile = drift(desired, actual, _spec_patch(left, found))
        return Replace("it has an address and should be headless", cuts_connections=True, meanwhile=meanwhile)
    if _needs_an_address(wanted, found):
        return Replace("it is headless and should have an address")
    if wanted.get("clusterIP") and wanted["clusterIP"] != found.get("clusterIP"):
        return Replace(f"its address should be {wanted['clusterIP']}", cuts_connections=True)
    return drift(desired, actual, _spec_patch(wanted, found))


def _gives_up_its_address(wanted: JSON, found: JSON) -> bool:
    return wanted.get("clusterIP") == HEADLESS and found.get("clusterIP") != HEADLESS


def _needs_an_address(wanted: JSON, found: JSON) -> bool:
    return wanted.get("clusterIP") != HEADLESS and found.get("clusterIP") == HEADLESS


def _spec_patch(wanted: JSON, found: JSON) -> JSON:
    others = {key: value for key, value in wanted.items() if key not in COMPARED_BY_THEMSELVES}
    patch = overlay(others, found)
    service_type = wanted.get("type") or CLUSTER_IP
    if service_type != (found.get("type") or CLUSTER_IP):
        patch["type"] = service_type
    selector = merge_patch_between(found.get("selector") or {}, wanted["selector"])
    if selector:
        patch["selector"] = selector
    if _ports_differ(wanted.get("ports") or [], found.get("ports") or []):
        patch["ports"] = _patched_ports(wanted.get("ports") or [], found.get("ports") or [], service_type) or None
    return {"spec": patch} if patch else {}


def _ports_differ(wanted: list[JSON], found: list[JSON]) -> bool:
    """Order does not count: KubeRay's is arbitrary for a service that the user supplied."""
    present = {port.get("name", ""): _with_defaults(port) for port in found}
    if len(wanted) != len(found) or {port.get("name", "") for port in wanted} != present.keys():
        return True
    return any(overlay(_with_defaults(port), present[port.get("name", "")]) for port in wanted)


def _with_defaults(port: JSON) -> JSON:
    return {"protocol": "TCP", "targetPort": port["port"], **port}


def _patched_ports(wanted: list[JSON], found: list[JSON], service_type: str) -> list[JSON]:
    """The wanted ports, with the node ports they had: clients outside the cluster have written those down."""
    if service_type not in TYPES_WITH_NODE_PORTS:
        return wanted
    node_ports = {port.get("name", ""): port["nodePort"] for port in found if port.get("nodePort")}
    kept = [{"nodePort": node_ports[name]} if (name := port.get("name", "")) in node_ports else {} for port in wanted]
    return [node_port | port for node_port, port in zip(kept, wanted, strict=True)]
