"""How long it takes to find the API server by its name is counted, as client-go does."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from aiohttp import web
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.errors import Unavailable
from raykeeper.kube.http.unanswered import Patience
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import CONFIG_MAPS
from support.kube_clients import connected
from support.scripted_server import served


@pytest.fixture
def metrics() -> KubeMetrics:
    return KubeMetrics(CollectorRegistry())


def look_ups(metrics: KubeMetrics, host: str) -> float | None:
    counted = "rest_client_dns_resolution_duration_seconds_count"
    return metrics.registry.get_sample_value(counted, {"host": host})


def a_kubeconfig(folder: Path, server: str) -> Path:
    config: JSON = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def answer(_: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"metadata": {"name": "a"}})


async def test_a_name_is_looked_up_and_an_address_is_not(metrics: KubeMetrics, tmp_path: Path) -> None:
    for host in ("localhost", "127.0.0.1"):
        async with (
            served(answer, host=host) as server,
            connected(a_kubeconfig(tmp_path, server), metrics=metrics) as kube,
        ):
            await kube.get(CONFIG_MAPS, ObjectKey("default", "a"))
    assert look_ups(metrics, "localhost") == 1
    assert look_ups(metrics, "127.0.0.1") is None


async def test_a_look_up_in_vain_is_counted_too(metrics: KubeMetrics, tmp_path: Path) -> None:
    nowhere = a_kubeconfig(tmp_path, "http://no-such-host.invalid")
    async with connected(nowhere, metrics=metrics, patience=Patience(connect=5, read=5, write=5)) as kube:
        with pytest.raises(Unavailable):
            await kube.get(CONFIG_MAPS, ObjectKey("default", "a"))
    assert look_ups(metrics, "no-such-host.invalid")
