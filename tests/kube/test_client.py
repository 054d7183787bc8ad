"""Every verb of the client against the real API server."""

from __future__ import annotations

import pytest

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound
from raykeeper.kube.resources import CONFIG_MAPS


def a_config_map(name: str, namespace: str, **data: str) -> JSON:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_an_object_is_created_read_and_deleted(kube: Kube, namespace: str) -> None:
    key = ObjectKey(namespace, "colours")
    created = await kube.create(CONFIG_MAPS, a_config_map(key.name, namespace, sky="blue"))
    assert created["data"] == {"sky": "blue"}
    assert (await kube.get(CONFIG_MAPS, key))["metadata"]["uid"] == created["metadata"]["uid"]
    await kube.delete(CONFIG_MAPS, key)
    assert await kube.find(CONFIG_MAPS, key) is None
    with pytest.raises(NotFound, match=f"get configmaps {key}: 404 NotFound"):
        await kube.get(CONFIG_MAPS, key)
