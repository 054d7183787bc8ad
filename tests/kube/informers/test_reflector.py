"""When a reflector lists again, when it waits, and what it calls a problem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from conditions import until
from raykeeper.api.meta import Object, ObjectKey, ObjectMeta, Resource
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.backoff import Backoff
from raykeeper.kube.errors import Expired, Forbidden
from raykeeper.kube.http.decoding import Page
from raykeeper.kube.http.requests import Query
from raykeeper.kube.informers.reflector import LASTING_FAILURES, Reflector, WatchSettings
from raykeeper.kube.informers.watch import Selection
from raykeeper.kube.metrics import KubeMetrics

PODS: Resource[Object] = Resource("", "v1", "pods", "Pod", Object)
TOO_OLD = Expired("watch of pods", 410, "Expired", "too old resource version")


def pod(name: str, version: str = "1") -> Object:
    return Object(ObjectMeta(name=name, namespace="n", resource_version=version))


def added(name: str, version: str = "2") -> bytes:
    meta = {"name": name, "namespace": "n", "resourceVersion": version}
    return msgspec.json.encode({"type": "ADDED", "object": {"metadata": meta}}) + b"\n"


Watch = bytes | Exception | None
"""How a scripted watch ends: after some bytes, with an error, or (None) never."""


class ScriptedServer:
    """Lists the objects it is given; each watch follows the next line of its script, the last one for ever."""

    def __init__(self, *script: Watch, lists: Callable[[int], list[Object]] = lambda _: []) -> None:
        self.listed = 0
        self.watched: list[str] = []
        self._script = list(script)
        self._lists = lists

    async def pages(
        self, resource: Resource[Any], namespace: str | None = None, **_: Any
    ) -> AsyncGenerator[Page[Any], None]:
        self.listed += 1
        yield Page(self._lists(self.listed), "1", "", None)

    async def stream(self, path: str, params: Query, *, silence: float) -> AsyncGenerator[bytes, None]:
        self.watched.append(str(params["resourceVersion"]))
        line = self._script[0] if len(self._script) == 1 else self._script.pop(0)
        if isinstance(line, Exception):
            raise line
        yield b""
        if line is None:
            await asyncio.Event().wait()
        else:
            yield line


class Objects:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.items: dict[ObjectKey, Object] = {}

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return list(self.items)

    def put(self, item: Object) -> None:
        self.items[item.key] = item

    def remove(self, key: ObjectKey) -> None:
        self.items.pop(key, None)


class Following:
    """A running reflector; short waits, so that a test of waiting takes no time."""

    def __init__(self, server: ScriptedServer, wait: float = 0.001) -> None:
        self.sink = Objects()
        settings = WatchSettings(backoff=Backoff(base=wait, limit=wait))
        metrics = KubeMetrics(CollectorRegistry())
        self.reflector = Reflector(server, Selection(PODS), self.sink, metrics, settings, SystemClock())

    async def __aenter__(self) -> Following:
        self._task = asyncio.create_task(self.reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_a_forgotten_version_is_listed_again_at_once() -> None:
    server = ScriptedServer(TOO_OLD, None, lists=lambda number: [pod("a")] if number == 1 else [pod("b")])
    async with Following(server, wait=3600) as following:
        await until(lambda: len(server.watched) == 2)
        assert server.listed == 2
        assert [key.name for key in following.sink.items] == ["b"]


async def test_a_version_forgotten_again_and_again_is_not_listed_without_a_pause() -> None:
    server = ScriptedServer(TOO_OLD)
    async with Following(server, wait=3600):
        await until(lambda: len(server.watched) == 2)
        await asyncio.sleep(0.05)
        assert server.listed == 2


async def test_a_watch_goes_on_from_the_last_change_it_heard_of() -> None:
    server = ScriptedServer(added("a", version="7"), None)
    async with Following(server):
        await until(lambda: len(server.watched) == 2)
    assert server.watched == ["1", "7"]
    assert server.listed == 1


async def test_a_short_watch_that_said_something_is_no_failure() -> None:
    server = ScriptedServer(*(added(f"pod-{number}", str(number)) for number in range(10)), None)
    async with Following(server, wait=3600) as following:
        await until(lambda: len(following.sink.items) == 10)
        assert following.reflector.problem is None


async def test_short_watches_without_a_word_are_a_problem_until_one_lasts() -> None:
    server = ScriptedServer(*[b""] * LASTING_FAILURES, None)
    async with Following(server, wait=0.02) as following:
        await until(lambda: following.reflector.problem)
        assert "without a word" in str(following.reflector.problem)
        await until(lambda: following.reflector.problem is None)


@pytest.mark.parametrize(
    "failure",
    [Forbidden("watch pods", 403, "Forbidden", "no"), Unavailable("kubernetes API", "connection refused")],
)
async def test_a_watch_that_keeps_failing_is_a_problem_and_is_not_listed_anew(failure: Exception) -> None:
    server = ScriptedServer(failure)
    async with Following(server) as following:
        await until(lambda: following.reflector.problem)
        assert following.reflector.problem == str(failure)
        assert server.listed == 1


async def test_a_server_that_names_a_time_to_wait_is_not_asked_before() -> None:
    server = ScriptedServer(Unavailable("kubernetes API", "busy", retry_after=3600))
    async with Following(server):
        await until(lambda: len(server.watched) == 1)
        await asyncio.sleep(0.05)
        assert len(server.watched) == 1
