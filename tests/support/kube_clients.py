"""Clients as tests need them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import Connection, load_connection
from raykeeper.kube.connect.credentials import Identity
from raykeeper.kube.http.unanswered import PATIENCE, Patience
from raykeeper.kube.metrics import KubeMetrics


class Anonymous:
    """Nobody, to a server without TLS."""

    async def current(self) -> Identity:
        return Identity({}, None, "")

    async def renew(self, refused: Identity) -> Identity:
        return refused


def anonymous(url: str) -> Connection:
    """A connection to a server that tests wrote themselves."""
    return Connection(url, "a test", Anonymous())


@asynccontextmanager
async def connected(
    to: Path | Connection,
    *,
    qps: float = 500.0,
    burst: int = 1000,
    metrics: KubeMetrics | None = None,
    patience: Patience = PATIENCE,
) -> AsyncIterator[Kube]:
    """A client of what a kubeconfig names, with metrics of its own unless some are given."""
    connection = await load_connection(to) if isinstance(to, Path) else to
    metrics = metrics or KubeMetrics(CollectorRegistry())
    async with Kube(connection, qps=qps, burst=burst, metrics=metrics, patience=patience) as kube:
        yield kube
