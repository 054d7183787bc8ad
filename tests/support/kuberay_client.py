"""A client as KubeRay's own: it enters a cluster and then asks paths at the root, with a cookie jar."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from starlette.types import ASGIApp
from yarl import URL

from support.asking import Answered
from support.serving_history import serving


@dataclass(frozen=True)
class KubeRayClient:
    http: aiohttp.ClientSession
    base: str

    async def get(self, path: str) -> Answered:
        """One whole answer; the path is sent as it is."""
        async with self.http.get(URL(self.base + path, encoded=True), allow_redirects=False) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answered(response.status, headers, await response.read())

    async def json(self, path: str) -> Any:
        """The answer to a request that must go well, read whatever its type says, as Go's clients do."""
        answered = await self.get(path)
        assert answered.status == 200, (path, answered.status, answered.text)
        return json.loads(answered.content)

    async def listed(self, namespace: str, name: str) -> dict[str, Any]:
        """The first session of a cluster in the list, as KubeRay's suite takes it."""
        rows: list[dict[str, Any]] = await self.json("/clusters/")
        return next(row for row in rows if (row["namespace"], row["name"]) == (namespace, name))


@asynccontextmanager
async def kuberay_client(app: ASGIApp) -> AsyncIterator[KubeRayClient]:
    jar = aiohttp.CookieJar(unsafe=True)  # unsafe: also for addresses that are numbers
    async with serving(app) as url, aiohttp.ClientSession(cookie_jar=jar) as http:
        yield KubeRayClient(http, url)
