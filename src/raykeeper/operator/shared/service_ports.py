"""The ports of the services around a cluster, made from the ports of the head's Ray container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from raykeeper.api import containers
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import ray_container
from raykeeper.api.raycluster import RayCluster

DEFAULT_PORTS: Final = {
    containers.CLIENT_PORT_NAME: containers.CLIENT_PORT,
    containers.GCS_SERVER_PORT_NAME: containers.GCS_SERVER_PORT,
    containers.DASHBOARD_PORT_NAME: containers.DASHBOARD_PORT,
    containers.METRICS_PORT_NAME: containers.METRICS_PORT,
    containers.SERVE_PORT_NAME: containers.SERVE_PORT,
}
APP_PROTOCOL: Final = "tcp"  # Istio and the like would otherwise guess the protocol from the port's name


def head_ports(cluster: RayCluster) -> dict[str, int]:
    """The head's ports by name: those its Ray container declares, else Ray's defaults; metrics in any case.

    Where another port has the number of the metrics already, it is left out: a service has each number once.
    """
    declared = ray_container(cluster.spec.head_group_spec.template).get("ports") or []
    ports = {port.get("name") or _name_of(port["containerPort"]): port["containerPort"] for port in declared}
    if not ports:
        return dict(DEFAULT_PORTS)
    if containers.METRICS_PORT not in ports.values():
        ports.setdefault(containers.METRICS_PORT_NAME, containers.METRICS_PORT)
    return ports


def dashboard_port(cluster: RayCluster) -> int:
    """The port of the head pod on which the dashboard answers."""
    return head_ports(cluster).get(containers.DASHBOARD_PORT_NAME, containers.DASHBOARD_PORT)


def dashboard_service_port(cluster: RayCluster) -> int:
    """The port of the head service that leads to the dashboard; a user's own service may have another than the pod."""
    named: dict[str, int] = {port["name"]: port["port"] for port in head_service_ports(cluster)}
    return named.get(containers.DASHBOARD_PORT_NAME, containers.DASHBOARD_PORT)


def serve_ports(cluster: RayCluster) -> list[JSON]:
    """The ports on which Ray Serve answers: `serve` and those whose names start with `serve-`."""
    ports = sorted(head_ports(cluster).items())
    return [{"name": name, "port": port} for name, port in ports if _is_serve(name)]


def head_service_ports(cluster: RayCluster) -> list[JSON]:
    """The ports of the head service: those that the user gives it, then those of the head pod by name."""
    ports = sorted(head_ports(cluster).items())
    ours = [{"name": name, "port": port, "appProtocol": APP_PROTOCOL} for name, port in ports]
    users = ((cluster.spec.head_group_spec.head_service or {}).get("spec") or {}).get("ports") or []
    return with_users_ports(users, ours)


def with_users_ports(users: Sequence[JSON], ours: Sequence[JSON]) -> list[JSON]:
    """The user's ports, all with a name since there are several, and those of ours that do not collide with them."""
    named = [{"name": _name_of(port["port"]), **port} for port in users]
    taken_names = {port["name"] for port in named}
    taken_numbers = {port["port"] for port in named if port.get("protocol", "TCP") == "TCP"}
    return named + [port for port in ours if port["name"] not in taken_names and port["port"] not in taken_numbers]


def _name_of(number: int) -> str:
    return f"{number}-port"


def _is_serve(name: str) -> bool:
    return name == containers.SERVE_PORT_NAME or name.startswith(f"{containers.SERVE_PORT_NAME}-")
