"""A list whose history etcd has forgotten half-way."""

from __future__ import annotations

import asyncio

import pytest

from bed.control_plane import ControlPlane
from raykeeper.api.meta import JSON
from raykeeper.kube.errors import Expired
from raykeeper.kube.resources import CONFIG_MAPS
from support.kube_clients import connected


def a_config_map(number: int) -> JSON:
    return {"metadata": {"name": f"map-{number}", "namespace": "default"}}


async def test_a_page_after_the_history_was_compacted_has_expired(own_control_plane: ControlPlane) -> None:
    async with connected(own_control_plane.admin_kubeconfig) as kube:
        for number in range(4):
            await kube.create(CONFIG_MAPS, a_config_map(number))
        first = await kube.page(CONFIG_MAPS, "default", limit=2)
        await kube.create(CONFIG_MAPS, a_config_map(5))  # so that there is something newer to compact to
        await asyncio.to_thread(own_control_plane.forget_history)
        with pytest.raises(Expired, match="list configmaps in default: 410 Expired"):
            await kube.page(CONFIG_MAPS, "default", limit=2, token=first.token)
