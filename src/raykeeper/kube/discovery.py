"""What the API server is and serves. Answers are remembered for a minute: CRDs come and go, but not often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from raykeeper.api.meta import Resource
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound
from raykeeper.kube.http.requests import Request

REMEMBERED_SECONDS = 60.0

T = TypeVar("T")


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """The API server's own version."""

    major: str
    minor: str
    git_version: str

    @property
    def number(self) -> tuple[int, int]:
        """Comparable, such as (1, 36); managed clusters write the minor as `36+`."""
        return int(self.major.rstrip("+")), int(self.minor.rstrip("+"))


class ServedResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource or subresource (`pods/log`) of one group and version."""

    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()


class _ServedResources(msgspec.Struct):
    resources: tuple[ServedResource, ...] = ()


class _Group(msgspec.Struct):
    name: str


class _Groups(msgspec.Struct):
    groups: tuple[_Group, ...] = ()


class _Remembered(NamedTuple):
    value: Any
    until: float


class Discovery:
    """Questions about the server itself."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._known: dict[str, _Remembered] = {}

    async def server_version(self) -> ServerVersion:
        return await self._ask("/version", msgspec.json.Decoder(ServerVersion).decode)

    async def groups(self) -> frozenset[str]:
        """The names of all API groups that are served, such as `ray.io`."""
        answer = await self._ask("/apis", msgspec.json.Decoder(_Groups).decode)
        return frozenset(group.name for group in answer.groups)

    async def resources(self, group: str, version: str) -> tuple[ServedResource, ...]:
        """What one group and version has; empty where it is not served."""
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            return (await self._ask(path, msgspec.json.Decoder(_ServedResources).decode)).resources
        except NotFound:
            return ()

    async def serves(self, resource: Resource[Any]) -> bool:
        """Whether the kind exists here at all, such as OpenShift's routes."""
        return any(served.name == resource.plural for served in await self.resources(resource.group, resource.version))

    async def _ask(self, path: str, decode: Callable[[bytes], T]) -> T:
        known = self._known.get(path)
        if known is not None and self._clock.steady() < known.until:
            value: T = known.value
            return value
        answer = await self._kube.send(Request("GET", path, f"discover {path}"))
        value = decode(answer.body)
        self._known[path] = _Remembered(value, self._clock.steady() + REMEMBERED_SECONDS)
        return value
