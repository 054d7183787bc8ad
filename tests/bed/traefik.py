"""Traefik on a control plane: a Gateway whose data plane carries requests, run as a process.

It reaches pods as any process of this machine does, and pods reach it at the node's address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bed.binaries import binary
from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.gateway_api import GROUP, install_gateway_crds
from bed.node.settings import NODE_ADDRESS
from bed.ports import free_port
from bed.processes import Process
from bed.rest import Json
from bed.waiting import wait_until

CLASS = "traefik"
CONTROLLER = "traefik.io/gateway-controller"
LISTENER_PORT = 80
"""Traefik serves those listeners of Gateways whose port it listens on itself; ours have this one."""
START_SECONDS = 120.0


def way_in(address: object = NODE_ADDRESS) -> str:
    """Where requests enter."""
    return f"http://{address}:{LISTENER_PORT}/"


@contextmanager
def traefik_on(plane: ControlPlane, address: object = NODE_ADDRESS) -> Iterator[Process]:
    """Traefik until the end of the block, with its GatewayClass; what it installed stays in the control plane.

    `address` is one of this machine, where it listens.
    """
    install_gateway_crds(plane)
    classes = f"/apis/{GROUP}/v1/gatewayclasses"
    body: Json = {"metadata": {"name": CLASS}, "spec": {"controllerName": CONTROLLER}}
    if not plane.admin.answers(f"{classes}/{CLASS}"):
        plane.admin.post(classes, {"apiVersion": f"{GROUP}/v1", "kind": "GatewayClass"} | body)
    process = _process(plane, address, free_port())
    process.start()
    try:
        wait_until(f"Traefik has taken its class (log: {process.log_file})", lambda: _has_class(plane), START_SECONDS)
        yield process
    finally:
        process.kill()


def _has_class(plane: ControlPlane) -> bool:
    status = plane.admin.get(f"/apis/{GROUP}/v1/gatewayclasses/{CLASS}").get("status", {})
    return any(one["type"] == "Accepted" and one["status"] == "True" for one in status.get("conditions", []))


def _process(plane: ControlPlane, address: object, ping_port: int) -> Process:
    flags = (
        f"--entrypoints.web.address={address}:{LISTENER_PORT}",
        f"--entrypoints.traefik.address={LOOPBACK}:{ping_port}",
        "--ping=true",
        "--providers.kubernetesgateway=true",
        f"--providers.kubernetesgateway.statusaddress.ip={address}",
        "--providers.providersthrottleduration=500ms",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        "--log.level=INFO",
    )
    return Process("traefik", [binary("traefik"), *flags], plane.folder, {"KUBECONFIG": str(plane.admin_kubeconfig)})
