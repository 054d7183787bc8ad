"""What the kubelet and Prometheus get to see."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from raykeeper.errors import Misconfigured
from raykeeper.kube.serving.checks import Answer, Checks, is_running, report
from raykeeper.kube.serving.server import Serving, ServingSettings

FREE = ServingSettings(metrics_address="127.0.0.1:0", probe_address="127.0.0.1:0")


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("greetings_total", "Hellos said", registry=registry).inc(3)
    return registry


@pytest.fixture
async def serving(registry: CollectorRegistry) -> AsyncIterator[Serving]:
    async with Serving(FREE, registry) as serving:
        yield serving


async def fetch(port: int | None, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, response.headers["Content-Type"], await response.text()


# --- probes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_program_without_checks_is_ok(serving: Serving, path: str) -> None:
    assert await fetch(serving.probe_port, path) == (200, "text/plain; charset=utf-8", "ok")


async def test_verbose_lists_the_checks_as_kubernetes_does(serving: Serving) -> None:
    serving.live.add("informers", lambda: None)
    serving.live.add("controllers", lambda: None)
    status, _, body = await fetch(serving.probe_port, "/healthz?verbose")
    assert (status, body) == (200, "[+]informers ok\n[+]controllers ok\nhealthz check passed\n")


async def test_a_failing_check_fails_the_probe_and_is_named(serving: Serving) -> None:
    serving.ready.add("lease", lambda: None)
    serving.ready.add("cache", lambda: "pods not listed yet")
    status, _, body = await fetch(serving.probe_port, "/readyz")
    assert (status, body) == (500, "[+]lease ok\n[-]cache failed: pods not listed yet\nreadyz check failed\n")
    assert (await fetch(serving.probe_port, "/healthz"))[0] == 200, "not ready is not dead"


async def test_each_check_can_be_asked_alone(serving: Serving) -> None:
    serving.ready.add("lease", lambda: None)
    serving.ready.add("cache", lambda: "pods not listed yet")
    assert (await fetch(serving.probe_port, "/readyz/lease"))[::2] == (200, "ok")
    assert (await fetch(serving.probe_port, "/readyz/cache"))[::2] == (500, "pods not listed yet")
    assert (await fetch(serving.probe_port, "/readyz/other"))[::2] == (404, "no check is named other\n")
    assert (await fetch(serving.probe_port, "/healthz/lease"))[0] == 404


async def test_a_check_is_asked_anew_by_each_probe(serving: Serving) -> None:
    problems: list[str | None] = ["starting", None]
    serving.ready.add("start", lambda: problems.pop(0))
    assert (await fetch(serving.probe_port, "/readyz"))[0] == 500
    assert (await fetch(serving.probe_port, "/readyz"))[0] == 200


async def test_a_check_with_a_bug_fails_and_its_traceback_is_logged(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> str | None:
        raise KeyError("oops")

    serving.live.add("broken", broken)
    status, _, body = await fetch(serving.probe_port, "/healthz")
    assert (status, body) == (500, "[-]broken failed: KeyError: 'oops'\nhealthz check failed\n")
    assert "Traceback" in caplog.text


async def test_a_task_that_ended_is_not_running() -> None:
    async def fail() -> None:
        raise ValueError("broken pipe")

    async def hang() -> None:
        await asyncio.Event().wait()

    checks = Checks()
    tasks = {
        "failed": asyncio.create_task(fail(), name="informer of pods"),
        "returned": asyncio.create_task(asyncio.sleep(0), name="elector"),
        "cancelled": asyncio.create_task(hang(), name="poller"),
        "running": asyncio.create_task(hang(), name="controller"),
    }
    for name, task in tasks.items():
        checks.add(name, is_running(task))
    assert [answer.problem for answer in checks.ask()] == [None] * 4
    await asyncio.sleep(0)
    tasks["cancelled"].cancel()
    await asyncio.wait([tasks["failed"], tasks["returned"], tasks["cancelled"]])
    assert checks.ask() == [
        Answer("failed", "informer of pods has ended: broken pipe"),
        Answer("returned", "elector has ended: returned"),
        Answer("cancelled", "poller has ended: cancelled"),
        Answer("running", None),
    ]
    tasks["running"].cancel()


def test_a_report_of_no_checks_passes() -> None:
    assert report("healthz", []) == "healthz check passed\n"


def test_a_stuck_event_loop_fails_the_probe_by_not_answering(registry: CollectorRegistry) -> None:
    started, stop, release = threading.Event(), asyncio.Event(), threading.Event()
    found: list[tuple[asyncio.AbstractEventLoop, int]] = []

    async def serve() -> None:
        async with Serving(FREE, registry) as serving:
            assert serving.probe_port is not None
            found.append((asyncio.get_running_loop(), serving.probe_port))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(10)
    loop, port = found[0]
    try:
        loop.call_soon_threadsafe(release.wait)  # a reconcile that blocks
        with socket.create_connection(("127.0.0.1", port), timeout=0.2) as probe:
            probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: probe\r\n\r\n")
            with pytest.raises(TimeoutError):
                probe.recv(1)
            release.set()
            probe.settimeout(10)
            assert probe.recv(100).startswith(b"HTTP/1.1 200 OK")
    finally:
        release.set()
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


# --- metrics ---------------------------------------------------------------------------------------------------------


async def test_metrics_are_plain_text_by_default(serving: Serving) -> None:
    status, kind, body = await fetch(serving.metrics_port, "/metrics")
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert "greetings_total 3.0" in body


async def test_metrics_are_open_metrics_where_asked_for(serving: Serving) -> None:
    _, kind, body = await fetch(serving.metrics_port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


async def test_metrics_are_compressed_where_accepted(serving: Serving) -> None:
    url = f"http://127.0.0.1:{serving.metrics_port}/metrics"
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(url, headers={"Accept-Encoding": "gzip"}) as response,
    ):
        assert response.headers["Content-Encoding"] == "gzip"
        assert b"greetings_total 3.0" in gzip.decompress(await response.read())


# --- listening -------------------------------------------------------------------------------------------------------


async def test_metrics_and_probes_keep_to_their_own_address(serving: Serving) -> None:
    assert serving.metrics_port != serving.probe_port
    assert (await fetch(serving.probe_port, "/metrics"))[0] == 404
    assert (await fetch(serving.metrics_port, "/healthz"))[0] == 404


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def test_one_address_can_serve_both(registry: CollectorRegistry) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with Serving(ServingSettings(address, address), registry) as serving:
        assert (await fetch(serving.metrics_port, "/metrics"))[0] == 200
        assert (await fetch(serving.metrics_port, "/readyz"))[0] == 200


@pytest.mark.parametrize("off", ["", "0"])
async def test_both_can_be_switched_off(registry: CollectorRegistry, off: str) -> None:
    async with Serving(ServingSettings(off, off), registry) as serving:
        assert serving.metrics_port is None
        assert serving.probe_port is None


async def test_all_interfaces_include_loopback(registry: CollectorRegistry) -> None:
    port = free_port()
    async with Serving(ServingSettings(f":{port}", "0"), registry):
        assert (await fetch(port, "/metrics"))[0] == 200


async def test_a_port_in_use_stops_by_name_and_leaves_no_listener_behind(registry: CollectorRegistry) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        probe = f"127.0.0.1:{taken.getsockname()[1]}"
        sentence = f"probe address='{probe}' cannot be used: cannot listen there (address already in use)"
        with pytest.raises(Misconfigured) as caught:
            await Serving(ServingSettings(f"127.0.0.1:{port}", probe), registry).__aenter__()
    assert str(caught.value) == sentence
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(
    ("address", "reason"),
    [("192.0.2.1:8080", "cannot assign requested address"), ("no-such-host.invalid:8080", r"name|node|resol")],
)
async def test_an_address_that_is_not_ours_stops_by_name(
    registry: CollectorRegistry, address: str, reason: str
) -> None:
    with pytest.raises(Misconfigured, match=rf"metrics address='{address}' cannot be used: .*({reason})"):
        await Serving(ServingSettings(address, "0"), registry).__aenter__()
