"""A client of the bed's API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from raykeeper.kube.client import Kube
from raykeeper.kube.connection import load_connection
from raykeeper.kube.metrics import KubeMetrics


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    """An administrator's client of the shared control plane."""
    connection = await load_connection(control_plane.admin_kubeconfig)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        yield kube
