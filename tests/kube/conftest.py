"""A client of the bed's API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bed.control_plane import ControlPlane
from raykeeper.kube.client import Kube
from support.kube_clients import connected


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    """An administrator's client of the shared control plane."""
    async with connected(control_plane.admin_kubeconfig) as kube:
        yield kube
