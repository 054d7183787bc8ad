"""Where a Ray head answers: by its own address inside the cluster, or through the API server from anywhere. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from raykeeper.api import containers
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.kube.proxied import Backend


@dataclass(frozen=True)
class HeadAddress:
    """One port of a head, and both ways that lead there."""

    host: str
    port: int
    backend: Backend
    """What the API server passes requests on to."""

    @property
    def authority(self) -> str:
        """Host and port, as `status.dashboardURL` of a RayJob has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def dashboard_address(service: JSON, cluster_domain: str) -> HeadAddress | None:
    """The dashboard behind a head service; None where the service has no port of that name."""
    metadata = service["metadata"]
    ports = {port.get("name"): port["port"] for port in (service.get("spec") or {}).get("ports") or ()}
    number = ports.get(containers.DASHBOARD_PORT_NAME)
    if number is None:
        return None
    key = ObjectKey(metadata["namespace"], metadata["name"])
    host = f"{key.name}.{key.namespace}.svc.{cluster_domain}"
    return HeadAddress(host, number, Backend("services", key, containers.DASHBOARD_PORT_NAME))


def dashboard_of(service: Object, cluster_domain: str) -> HeadAddress | None:
    """The same for a service as it lies in a cache."""
    metadata = {"namespace": service.metadata.namespace, "name": service.metadata.name}
    body = {"metadata": metadata, "spec": msgspec.json.decode(service.spec or b"{}")}
    return dashboard_address(body, cluster_domain)


def pod_address(pod: ObjectKey, ip: str, port: int) -> HeadAddress:
    """A port of a pod, such as that of the proxy of Ray Serve in it."""
    return HeadAddress(ip, port, Backend("pods", pod, port))
