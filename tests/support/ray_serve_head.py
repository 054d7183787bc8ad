"""Ray Serve's API as a head answers it, with applications that a test moves by hand; each cluster has a head."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from raykeeper.ray.serve import METRICS_PATH, PROXY_HEALTH_PATH
from support.scripted_server import served

MOST_CLUSTERS = 8
"""Clusters of one test."""


@dataclass
class ServeHead:
    """One head."""

    configs: list[dict[str, Any]] = field(default_factory=list)
    """All that were sent and taken, in their order."""
    state: str = "RUNNING"
    """What becomes of applications that are sent."""
    states: dict[str, str] = field(default_factory=dict)
    """States of single applications."""
    message: str = ""
    deployment_state: str = "HEALTHY"
    failure: str = ""
    """While set, every answer is a 500 with this."""
    refusal: str = ""
    """While set, every config is a 400 with this text."""
    garbage: str = ""
    """While set, every answer about applications is this text."""
    is_hanging: bool = False
    """While set, nothing is answered."""
    is_proxy_healthy: bool = True
    requests: dict[int, int] = field(default_factory=dict)
    """How often Serve has answered with which status."""
    has_lost_all: bool = False
    """Serve was started anew and knows no config, until it is sent one."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        while self.is_hanging:  # noqa: ASYNC110 - a test sets it
            await asyncio.sleep(0.05)
        if request.path == PROXY_HEALTH_PATH:
            return web.Response(status=200 if self.is_proxy_healthy else 503, text="success")
        if self.failure:
            return web.Response(status=500, text=self.failure)
        if request.path == METRICS_PATH:
            return web.Response(text="".join(map(self._metric, self.requests)))
        if request.method == "PUT":
            return self._take(json.loads(await request.read()))
        if self.garbage:
            return web.Response(text=self.garbage)
        return web.json_response(self.details())

    def _metric(self, status: int) -> str:
        tags = f'application="shop",method="GET",route="/",status_code="{status}"'
        return f"ray_serve_num_http_requests_total{{{tags}}} {self.requests[status]}.0\n"

    def _take(self, config: dict[str, Any]) -> web.Response:
        if self.refusal:
            return web.Response(status=400, text=self.refusal)
        self.configs.append(config)
        self.has_lost_all = False
        return web.Response(status=200)

    def details(self) -> Mapping[str, Any]:
        """What Serve of Ray 2.60 answers, without what nobody reads here."""
        config = self.configs[-1] if self.configs and not self.has_lost_all else {}
        applications = {one.get("name", ""): self._application(one) for one in config.get("applications", ())}
        return {"deploy_mode": "MULTI_APP", "target_capacity": None, "proxies": {}, "applications": applications}

    def _application(self, config: dict[str, Any]) -> Mapping[str, Any]:
        name = config.get("name", "")
        deployment = {"name": "Model", "status": self.deployment_state, "status_trigger": "", "message": self.message}
        return {
            "name": name,
            "route_prefix": config.get("route_prefix", "/"),
            "status": self.states.get(name, self.state),
            "message": self.message,
            "deployed_app_config": config,
            "source": "declarative",
            "deployments": {"Model": {**deployment, "replicas": []}},
        }


class ServeHeads:
    """The heads of a test, given out to clusters in the order in which they are asked for."""

    def __init__(self, heads: Mapping[str, ServeHead]) -> None:
        self._free = list(heads.items())
        self._given: dict[str, tuple[str, ServeHead]] = {}
        self.script: dict[str, Any] = {}
        """What heads are given on their way from now on."""

    def of(self, cluster: str) -> ServeHead:
        return self._at(cluster)[1]

    def url_of(self, cluster: str) -> str:
        return self._at(cluster)[0]

    def all_are(self, state: str) -> None:
        """Applications on all heads are so, also on those to come."""
        self.script["state"] = state
        for _, head in self._given.values():
            head.state = state

    async def handle_proxied(self, request: web.BaseRequest) -> web.StreamResponse:
        """A request to any head by its own address, as an HTTP proxy gets it."""
        host = request.url.host or ""
        if request.path == PROXY_HEALTH_PATH:
            return web.Response(text="success")
        return await self.of(host.partition("-head-svc.")[0]).handle(request)

    def _at(self, cluster: str) -> tuple[str, ServeHead]:
        if cluster not in self._given:
            self._given[cluster] = self._free.pop(0)
            for name, value in self.script.items():
                setattr(self._given[cluster][1], name, value)
        return self._given[cluster]


@asynccontextmanager
async def serve_heads(**script: Any) -> AsyncIterator[ServeHeads]:
    """Heads that all begin with the same script."""
    async with AsyncExitStack() as stack:
        heads = [ServeHead(**script) for _ in range(MOST_CLUSTERS)]
        yield ServeHeads({await stack.enter_async_context(served(head.handle)): head for head in heads})
