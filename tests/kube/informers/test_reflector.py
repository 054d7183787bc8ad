"""When a reflector lists again, when it waits, and what it calls a problem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from raykeeper.api.meta import Object, ObjectKey, ObjectMeta, Resource
from raykeeper.backoff import Backoff
from raykeeper.clock import SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.errors import Expired, Forbidden, Invalid, NotDone
from raykeeper.kube.http.decoding import Page
from raykeeper.kube.http.requests import Query
from raykeeper.kube.informers.reflector import LASTING_FAILURES, Reflector, WatchSettings
from raykeeper.kube.informers.watch import Selection
from raykeeper.kube.metrics import KubeMetrics
from support.conditions import until

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
        self.watched.append(str(params["resourceVersion"] or "all"))
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


class SessionFollower:
    """A running reflector; short waits, so that a test of waiting takes no time."""

    def __init__(self, server: ScriptedServer, wait: float = 0.001, *, streams_lists: bool = False) -> None:
        self.sink = Objects()
        settings = WatchSettings(backoff=Backoff(base=wait, limit=wait), streams_lists=streams_lists)
        metrics = KubeMetrics(CollectorRegistry())
        self.reflector = Reflector(server, Selection(PODS), self.sink, metrics, settings, SystemClock())

    async def __aenter__(self) -> SessionFollower:
        self._task = asyncio.create_task(self.reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_a_forgotten_version_is_listed_again_at_once() -> None:
    server = ScriptedServer(TOO_OLD, None, lists=lambda number: [pod("a")] if number == 1 else [pod("b")])
    async with SessionFollower(server, wait=3600) as following:
        await until(lambda: len(server.watched) == 2)
        assert server.listed == 2
        assert [key.name for key in following.sink.items] == ["b"]


async def test_a_version_forgotten_again_and_again_is_not_listed_without_a_pause() -> None:
    server = ScriptedServer(TOO_OLD)
    async with SessionFollower(server, wait=3600):
        await until(lambda: len(server.watched) == 2)
        await asyncio.sleep(0.05)
        assert server.listed == 2


async def test_a_watch_goes_on_from_the_last_change_it_heard_of() -> None:
    server = ScriptedServer(added("a", version="7"), None)
    async with SessionFollower(server):
        await until(lambda: len(server.watched) == 2)
    assert server.watched == ["1", "7"]
    assert server.listed == 1


async def test_a_short_watch_that_said_something_is_no_failure() -> None:
    server = ScriptedServer(*(added(f"pod-{number}", str(number)) for number in range(10)), None)
    async with SessionFollower(server, wait=3600) as following:
        await until(lambda: len(following.sink.items) == 10)
        assert following.reflector.problem is None


async def test_short_watches_without_a_word_are_a_problem_until_one_lasts() -> None:
    server = ScriptedServer(*[b""] * LASTING_FAILURES, None)
    async with SessionFollower(server, wait=0.02) as following:
        await until(lambda: following.reflector.problem)
        assert "without a word" in str(following.reflector.problem)
        await until(lambda: following.reflector.problem is None)


@pytest.mark.parametrize(
    "failure",
    [Forbidden("watch pods", 403, "Forbidden", "no"), NotDone("kubernetes API", "connection refused")],
)
async def test_a_watch_that_keeps_failing_is_a_problem_and_is_not_listed_anew(failure: Exception) -> None:
    server = ScriptedServer(failure)
    async with SessionFollower(server) as following:
        await until(lambda: following.reflector.problem)
        assert following.reflector.problem == str(failure)
        assert server.listed == 1


async def test_a_server_that_names_a_time_to_wait_is_not_asked_before() -> None:
    server = ScriptedServer(Unavailable("kubernetes API", "busy", retry_after=3600))
    async with SessionFollower(server):
        await until(lambda: len(server.watched) == 1)
        await asyncio.sleep(0.05)
        assert len(server.watched) == 1


RESTORED = Unavailable("kubernetes API", "watch of pods: 504 Timeout: Too large resource version: 9, current: 3")


@pytest.mark.parametrize("failure", [RESTORED, b"this is no frame of a watch\n"], ids=["restored etcd", "odd frame"])
async def test_a_version_from_which_watches_keep_failing_is_given_up_for_a_new_list(failure: Watch) -> None:
    server = ScriptedServer(*[failure] * LASTING_FAILURES, None, lists=lambda number: [pod(f"list-{number}")])
    async with SessionFollower(server) as following:
        await until(lambda: server.listed == 2)
        await until(lambda: [key.name for key in following.sink.items] == ["list-2"])
        await until(lambda: following.reflector.problem is None)


async def test_an_odd_frame_behind_bookmarks_is_no_reason_to_try_for_ever() -> None:
    server = ScriptedServer(bookmark("5") + b"this is no frame of a watch\n")
    async with SessionFollower(server):
        await until(lambda: server.listed >= 2)


def bookmark(version: str, **annotations: str) -> bytes:
    meta = {"resourceVersion": version, "annotations": annotations}
    return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": meta}}) + b"\n"


END = {"k8s.io/initial-events-end": "true"}


async def test_a_streamed_list_fills_the_cache_without_a_page() -> None:
    server = ScriptedServer(added("a", "3") + added("b", "4") + bookmark("5", **END) + added("c", "6"), None)
    async with SessionFollower(server, streams_lists=True) as following:
        await until(lambda: len(server.watched) == 2)
        assert sorted(key.name for key in following.sink.items) == ["a", "b", "c"]
    assert (server.listed, server.watched) == (0, ["all", "6"])


async def test_a_streamed_list_removes_what_went_away_while_nobody_looked() -> None:
    first = added("a", "3") + added("b", "4") + bookmark("5", **END)
    server = ScriptedServer(first, TOO_OLD, added("b", "4") + bookmark("9", **END), None)
    async with SessionFollower(server, streams_lists=True) as following:
        await until(lambda: len(server.watched) == 4)
        assert [key.name for key in following.sink.items] == ["b"]
    assert server.watched == ["all", "5", "all", "9"]


async def test_a_streamed_list_that_breaks_off_removes_nothing_and_is_not_synced() -> None:
    server = ScriptedServer(added("a", "3"), None, lists=lambda _: [pod("a"), pod("b")])
    async with SessionFollower(server, streams_lists=True) as following:
        await until(lambda: server.listed == 1)
        await following.reflector.synced.wait()
        assert sorted(key.name for key in following.sink.items) == ["a", "b"]


@pytest.mark.parametrize(
    "first",
    [Invalid("watch pods", 422, "Invalid", "sendInitialEvents: Forbidden"), added("a", "3") + bookmark("4"), b""],
    ids=["gate is off", "the field is not known", "it ends at once"],
)
async def test_a_server_that_streams_no_lists_is_asked_for_pages_at_once(first: Watch) -> None:
    server = ScriptedServer(first, None, lists=lambda _: [pod("a")])
    async with SessionFollower(server, wait=3600, streams_lists=True) as following:
        await until(following.reflector.synced.is_set)
        await until(lambda: len(server.watched) == 2)
        assert (server.listed, server.watched) == (1, ["all", "1"])
