"""What is sent again, what is not, and what is counted, with faults injected before the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from prometheus_client import CollectorRegistry

from bed.control_plane import ControlPlane
from bed.faults import Fault, HttpFaults
from raykeeper.api.meta import JSON, ObjectKey
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import TooManyRequests
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import CONFIG_MAPS
from support.kube_clients import connected


@pytest.fixture
def faults(control_plane: ControlPlane) -> Iterator[HttpFaults]:
    with HttpFaults(control_plane) as faults:
        yield faults


@pytest.fixture
def metrics() -> KubeMetrics:
    return KubeMetrics(CollectorRegistry())


@pytest.fixture
async def faulty(control_plane: ControlPlane, faults: HttpFaults, metrics: KubeMetrics) -> AsyncIterator[Kube]:
    """A client that goes by the faults."""
    async with connected(control_plane.kubeconfig(server=faults.server), metrics=metrics) as kube:
        yield kube


def a_config_map(namespace: str) -> JSON:
    return {"metadata": {"name": "a", "namespace": namespace}}


def sent(faults: HttpFaults, method: str) -> int:
    return sum(name == method for name, _ in faults.requests)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_create_is_repeated_when_the_server_asks_for_it(
    status: int, faulty: Kube, faults: HttpFaults, metrics: KubeMetrics, namespace: str
) -> None:
    faults.inject(Fault(status, method="POST", retry_after=0, times=3))
    await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    assert sent(faults, "POST") == 4
    labels = {"code": str(status), "verb": "POST", "host": faults.server.removeprefix("https://")}
    assert metrics.registry.get_sample_value("rest_client_request_retries_total", labels) == 3


async def test_the_pause_that_the_server_asks_for_is_kept_and_can_be_cancelled(
    faulty: Kube, faults: HttpFaults, namespace: str
) -> None:
    fault = faults.inject(Fault(429, retry_after=20))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    assert fault.hits == 1


async def test_a_server_that_is_busy_for_ever_is_asked_ten_times(
    faulty: Kube, faults: HttpFaults, namespace: str
) -> None:
    fault = faults.inject(Fault(429, retry_after=0))
    with pytest.raises(TooManyRequests, match="429 TooManyRequests: injected by the test bed"):
        await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    assert fault.hits == 10


async def test_a_server_error_is_passed_on_at_once(faulty: Kube, faults: HttpFaults, namespace: str) -> None:
    fault = faults.inject(Fault(500))
    with pytest.raises(Unavailable, match=f"kubernetes API at {faults.server}: list configmaps .*: 500 InternalError"):
        await faulty.list(CONFIG_MAPS, namespace)
    assert fault.hits == 1


async def test_a_create_whose_answer_was_lost_is_not_repeated(
    faulty: Kube, faults: HttpFaults, kube: Kube, namespace: str
) -> None:
    await faulty.find(CONFIG_MAPS, ObjectKey(namespace, "a"))  # so that the create goes over a used connection
    fault = faults.inject(Fault(None, method="POST", after_acting=True))
    with pytest.raises(Unavailable, match="the connection was dropped before the answer"):
        await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    assert fault.hits == 1
    assert await kube.find(CONFIG_MAPS, ObjectKey(namespace, "a")) is not None


async def test_a_read_on_a_connection_that_died_idle_is_repeated_once(
    faulty: Kube, faults: HttpFaults, namespace: str
) -> None:
    await faulty.list(CONFIG_MAPS, namespace)
    faults.inject(Fault(None, method="GET", times=1))
    await faulty.list(CONFIG_MAPS, namespace)
    assert sent(faults, "GET") == 3


async def test_requests_are_counted_by_code_method_and_host(
    faulty: Kube, faults: HttpFaults, metrics: KubeMetrics, namespace: str
) -> None:
    await faulty.list(CONFIG_MAPS, namespace)
    await faulty.find(CONFIG_MAPS, ObjectKey(namespace, "none"))
    faults.inject(Fault(None))
    with pytest.raises(Unavailable):
        await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    host = faults.server.removeprefix("https://")
    counted = {
        (code, method): metrics.registry.get_sample_value(
            "rest_client_requests_total", {"code": code, "method": method, "host": host}
        )
        for code, method in [("200", "GET"), ("404", "GET"), ("<error>", "POST")]
    }
    assert counted == {("200", "GET"): 1, ("404", "GET"): 1, ("<error>", "POST"): 1}
    for name in ("rest_client_request_duration_seconds_count", "rest_client_rate_limiter_duration_seconds_count"):
        assert metrics.registry.get_sample_value(name, {"verb": "GET", "host": host}) == 2


async def test_bodies_are_measured_both_ways(
    faulty: Kube, faults: HttpFaults, metrics: KubeMetrics, namespace: str
) -> None:
    await faulty.create(CONFIG_MAPS, a_config_map(namespace))
    labels = {"verb": "POST", "host": faults.server.removeprefix("https://")}
    for name in ("rest_client_request_size_bytes", "rest_client_response_size_bytes"):
        assert metrics.registry.get_sample_value(f"{name}_count", labels) == 1
        size = metrics.registry.get_sample_value(f"{name}_sum", labels)
        assert size is not None
        assert size > len(b'{"metadata": {}}')
