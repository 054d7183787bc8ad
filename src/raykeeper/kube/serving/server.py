"""What a program shows of itself over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz` for the kubelet.

It is answered by the event loop that does the work, on purpose. A loop that is stuck cannot answer, so the kubelet's
probe times out and the program is restarted: a thread of its own would go on saying ok.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from raykeeper.errors import Misconfigured
from raykeeper.kube.serving.checks import Checks, report
from raykeeper.logs import Log
from raykeeper.settings.addresses import Address, parse_address

# A scrape takes milliseconds; whoever reads slower than this must not hold up the end of the program.
SHUTDOWN_SECONDS = 1.0

log = Log("raykeeper.kube.serving")


@dataclass(frozen=True)
class ServingSettings:
    """Where a program can be watched. The same address for both is fine."""

    metrics_address: str = "127.0.0.1:8080"
    """Where `/metrics` is served: host:port, or :port for all interfaces, or 0 for nowhere."""
    probe_address: str = "127.0.0.1:8082"
    """Where `/healthz` and `/readyz` are served, in the same spelling."""


@dataclass(frozen=True)
class _Listener:
    setting: str
    text: str
    address: Address
    routes: tuple[web.RouteDef, ...]


class Serving:
    """The listeners of one program, open inside `async with`; `live` and `ready` take checks at any time."""

    def __init__(self, settings: ServingSettings, registry: CollectorRegistry) -> None:
        self.live = Checks()
        self.ready = Checks()
        self._settings = settings
        self._registry = registry
        self._runners: dict[str, web.AppRunner] = {}

    async def __aenter__(self) -> Serving:
        """Open the listeners; `Misconfigured` names the address that cannot be used."""
        try:
            for listener in self._listeners():
                await self._open(listener)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def metrics_port(self) -> int | None:
        """The port `/metrics` is on; None if it is not served."""
        return self._port_of("metrics address")

    @property
    def probe_port(self) -> int | None:
        """The port `/healthz` and `/readyz` are on; None if they are not served."""
        return self._port_of("probe address")

    def _port_of(self, setting: str) -> int | None:
        runner = self._runners.get(setting)
        return None if runner is None else int(runner.addresses[0][1])

    def _listeners(self) -> Iterator[_Listener]:
        metrics = parse_address("metrics address", self._settings.metrics_address)
        probes = parse_address("probe address", self._settings.probe_address)
        metrics_routes, probe_routes = tuple(self._metrics_routes()), tuple(self._probe_routes())
        if metrics is not None and metrics == probes and metrics.port:
            metrics_routes, probes = metrics_routes + probe_routes, None
        if metrics is not None:
            yield _Listener("metrics address", self._settings.metrics_address, metrics, metrics_routes)
        if probes is not None:
            yield _Listener("probe address", self._settings.probe_address, probes, probe_routes)

    async def _open(self, listener: _Listener) -> None:
        app = web.Application()
        app.add_routes(listener.routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        self._runners[listener.setting] = runner
        try:
            await web.TCPSite(runner, listener.address.host, listener.address.port).start()
        except OSError as exc:
            cure = f"cannot listen there ({_reason(exc)})"
            raise Misconfigured(listener.setting, listener.text, cure) from exc
        log.info("listening", purpose=listener.setting, addresses=runner.addresses)

    async def _close(self) -> None:
        while self._runners:
            _, runner = self._runners.popitem()
            await runner.cleanup()

    def _metrics_routes(self) -> Iterable[web.RouteDef]:
        # OpenMetrics where the Accept header asks for it, compressed where Accept-Encoding allows.
        yield web.get("/metrics", make_aiohttp_handler(self._registry))

    def _probe_routes(self) -> Iterable[web.RouteDef]:
        for endpoint, checks in (("healthz", self.live), ("readyz", self.ready)):
            handler = _ProbeHandler(endpoint, checks)
            yield web.get(f"/{endpoint}", handler.all_checks)
            yield web.get(f"/{endpoint}/{{name}}", handler.one_check)


class _ProbeHandler:
    """Answers one endpoint as the API server answers its own, but says why a check failed."""

    def __init__(self, endpoint: str, checks: Checks) -> None:
        self._endpoint = endpoint
        self._checks = checks

    async def all_checks(self, request: web.Request) -> web.Response:
        answers = self._checks.ask()
        if any(answer.problem for answer in answers):
            return web.Response(status=500, text=report(self._endpoint, answers))
        return web.Response(text=report(self._endpoint, answers) if "verbose" in request.query else "ok")

    async def one_check(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._checks:
            return web.Response(status=404, text=f"no check is named {name}\n")
        [answer] = self._checks.ask(name)
        return web.Response(text="ok") if answer.problem is None else web.Response(status=500, text=answer.problem)


def _reason(error: OSError) -> str:
    """The system's own words: those of the event loop repeat the address, and name resolution has its own numbers."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error.strerror or error).lower()
