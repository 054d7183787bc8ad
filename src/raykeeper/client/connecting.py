"""How a client reaches Kubernetes: as kubectl does, or an API server of ours by its address (V2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raykeeper.errors import Misconfigured

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube
    from raykeeper.kube.connect.connection import Connection


@dataclass(frozen=True)
class Target:
    """Where to, and as whom. With nothing said: as kubectl would, or as the pod's service account."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str = ""
    """Address of an API server of ours, such as `http://localhost:8888`, instead of Kubernetes itself."""
    token: str = ""
    """For that server."""
    ca: str = ""
    """PEM of the authority that signed its certificate; empty for those that the machine trusts."""


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Kube]:
    """A client. Raises Misconfigured."""
    from prometheus_client import CollectorRegistry

    from raykeeper.kube.client import Kube
    from raykeeper.kube.connect.connection import load_connection
    from raykeeper.kube.metrics import KubeMetrics

    if target.server:
        connection = _by_address(target)
    else:
        connection = await load_connection(target.kubeconfig, target.context)
    # Of its own: a script may have several clients, and metrics of its own.
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry()), qps=50, burst=100) as kube:
        yield kube


def _by_address(target: Target) -> Connection:
    from raykeeper.clock import SystemClock
    from raykeeper.kube.connect.connection import Connection
    from raykeeper.kube.connect.credentials import Login, RenewedCredentials
    from raykeeper.kube.connect.tls import TlsMaterial

    server = target.server.rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise Misconfigured("server", target.server, "it must begin with http:// or https://")
    login = Login(
        headers={"Authorization": f"Bearer {target.token}"} if target.token else {},
        tls=TlsMaterial(ca=target.ca or None) if server.startswith("https://") else None,
        shown="the token" if target.token else "",
    )

    async def same() -> Login:
        return login

    credentials = RenewedCredentials(f"client of {server}", same, login, SystemClock())
    return Connection(server=server, source=f"address {server}", credentials=credentials)
