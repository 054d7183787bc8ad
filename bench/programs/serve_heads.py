"""Serve's API for many heads at once, told apart by the host they are asked as. Every config that is sent runs.

`python -m bench.programs.serve_heads PORT`; `GET /asked` says how many requests came so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from raykeeper.ray.serve import APPLICATIONS_PATH, PROXY_HEALTH_PATH


@dataclass
class ServeHeads:
    """What each head was sent."""

    configs: dict[str, Any] = field(default_factory=dict)
    asked: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/asked":
            return web.json_response({"asked": self.asked})
        self.asked += 1
        if request.path == PROXY_HEALTH_PATH:
            return web.Response(text="success")
        if request.path != APPLICATIONS_PATH:
            return web.Response(status=404)
        host = request.headers["Host"]
        if request.method == "PUT":
            self.configs[host] = json.loads(await request.read())
            return web.Response()
        applications = self.configs.get(host, {}).get("applications", [])
        return web.json_response({"applications": {one["name"]: _running(one) for one in applications}})


def _running(application: dict[str, Any]) -> dict[str, Any]:
    """As Ray 2.60 tells it, without what nobody reads."""
    deployment = {"name": "Model", "status": "HEALTHY", "message": "", "replicas": []}
    told = {"name": application["name"], "status": "RUNNING", "message": "", "source": "declarative"}
    return {**told, "deployed_app_config": application, "deployments": {"Model": deployment}}


async def serve(port: int) -> None:
    runner = web.ServerRunner(web.Server(ServeHeads().handle), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
