"""`Client`: the same as `AsyncClient` for scripts and notebooks, which have no event loop or one that must not wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Generator, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from raykeeper.api.meta import JSON
from raykeeper.client.async_client import (
    FINISHED_SECONDS,
    READY_SECONDS,
    AsyncClient,
    AsyncClusters,
    AsyncCollection,
    AsyncCronJobs,
    AsyncJobs,
    AsyncServices,
    Changed,
)
from raykeeper.client.diagnosis import Diagnosis
from raykeeper.errors import RaykeeperError

T = TypeVar("T")
C = TypeVar("C", bound=AsyncCollection)


class _Loop:
    """An event loop in a thread of its own; ends with the program, or before."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="raykeeper-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; Ctrl-C stops the work, too."""
        if self._loop.is_closed():
            work.close()
            raise RaykeeperError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class Client:
    """Ray objects of one Kubernetes cluster. Use it as `with Client() as ray`, or call `close` at the end.

    It takes what `AsyncClient` takes, and raises the same errors.
    """

    def __init__(
        self,
        *,
        namespace: str = "",
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        server: str = "",
        token: str = "",
        ca: str = "",
        history: str = "",
        history_token: str = "",
    ) -> None:
        self._async = AsyncClient(
            namespace=namespace,
            kubeconfig=kubeconfig,
            context=context,
            server=server,
            token=token,
            ca=ca,
            history=history,
            history_token=history_token,
        )
        self._loop = _Loop()
        try:
            self._loop.run(self._async.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        self.clusters = Clusters(self._loop, self._async.clusters)
        self.jobs = Jobs(self._loop, self._async.jobs)
        self.services = Services(self._loop, self._async.services)
        self.cron_jobs = CronJobs(self._loop, self._async.cron_jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its connections. May be called twice."""
        with contextlib.suppress(RaykeeperError):
            self._loop.run(self._async.__aexit__())
        self._loop.close()

    @property
    def namespace(self) -> str:
        """Where things are that name no namespace."""
        return self._async.namespace

    def report(self, kind: str, name: str, namespace: str = "") -> JSON:
        """The history server's report on an object, also if it is gone. Raises NoHistory and Unavailable."""
        return self._loop.run(self._async.report(kind, name, namespace))

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> JSON:
        """The JSON of any answer of the server, for what has no method here; refusals raise as everywhere."""
        return self._loop.run(self._async.request(method, path, body, content_type=content_type))


class Collection(Generic[C]):
    """Objects of one kind; each method is that of `AsyncCollection`, and returns when it is done."""

    def __init__(self, loop: _Loop, collection: C) -> None:
        self._loop = loop
        self._async = collection

    def create(self, manifest: JSON, namespace: str = "", *, dry_run: bool = False) -> JSON:
        """The object as Kubernetes made it. Raises InvalidManifest before anything is sent, and AlreadyExists."""
        return self._loop.run(self._async.create(manifest, namespace, dry_run=dry_run))

    def apply(self, manifest: JSON, namespace: str = "", *, manager: str = "raykeeper-client") -> JSON:
        """The object after server-side apply: made, or changed to what the manifest says. Raises InvalidManifest."""
        return self._loop.run(self._async.apply(manifest, namespace, manager=manager))

    def get(self, name: str, namespace: str = "") -> JSON:
        """The object as it is. Raises NotFound."""
        return self._loop.run(self._async.get(name, namespace))

    def find(self, name: str, namespace: str = "") -> JSON | None:
        """The object, or None."""
        return self._loop.run(self._async.find(name, namespace))

    def list(
        self, namespace: str = "", *, labels: str | Mapping[str, str] = "", all_namespaces: bool = False
    ) -> list[JSON]:
        """All that match, of one namespace or of all."""
        return self._loop.run(self._async.list(namespace, labels=labels, all_namespaces=all_namespaces))

    def patch(self, name: str, patch: JSON, namespace: str = "") -> JSON:
        """The object after a merge patch; None removes a field, and lists are replaced."""
        return self._loop.run(self._async.patch(name, patch, namespace))

    def delete(self, name: str, namespace: str = "", *, missing_ok: bool = False) -> None:
        """Ask for its end. Raises NotFound unless `missing_ok`."""
        self._loop.run(self._async.delete(name, namespace, missing_ok=missing_ok))

    def suspend(self, name: str, namespace: str = "") -> JSON:
        """Let it have no pods until it is resumed."""
        return self._loop.run(self._async.suspend(name, namespace))

    def resume(self, name: str, namespace: str = "") -> JSON:
        return self._loop.run(self._async.resume(name, namespace))

    def watch(self, namespace: str = "", *, labels: str = "", name: str = "") -> Generator[Changed, None, None]:
        """Every object that is there, then every change, for as long as somebody listens."""
        changes = self._async.watch(namespace, labels=labels, name=name)
        try:
            while True:
                yield self._loop.run(_next(changes))
        finally:
            self._loop.run(changes.aclose())

    def describe(self, name: str, namespace: str = "") -> Diagnosis:
        """How it is, and why, in words: conditions, pods, Events, and the report's headline."""
        return self._loop.run(self._async.describe(name, namespace))

    def wait_until_gone(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> None:
        """Return once there is no such object. Raises WaitTimedOut."""
        self._loop.run(self._async.wait_until_gone(name, namespace, timeout=timeout))


async def _next(changes: Any) -> Changed:
    change: Changed = await anext(changes)
    return change


class Clusters(Collection[AsyncClusters]):
    """RayClusters."""

    def wait_until_ready(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The cluster once all its pods work. Raises WaitTimedOut, and WaitFailed for a spec that is invalid."""
        return self._loop.run(self._async.wait_until_ready(name, namespace, timeout=timeout))

    def wait_until_suspended(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        return self._loop.run(self._async.wait_until_suspended(name, namespace, timeout=timeout))

    def scale(
        self,
        name: str,
        group: str,
        replicas: int,
        namespace: str = "",
        *,
        min_replicas: int | None = None,
        max_replicas: int | None = None,
    ) -> JSON:
        """Let a group have so many workers; its bounds give way where they stand against it."""
        bounds = {"min_replicas": min_replicas, "max_replicas": max_replicas}
        return self._loop.run(self._async.scale(name, group, replicas, namespace, **bounds))


class Jobs(Collection[AsyncJobs]):
    """RayJobs."""

    def wait_until_running(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The job once it runs or has finished. Raises WaitTimedOut and WaitFailed."""
        return self._loop.run(self._async.wait_until_running(name, namespace, timeout=timeout))

    def wait_until_finished(self, name: str, namespace: str = "", *, timeout: float = FINISHED_SECONDS) -> JSON:
        """The job once it succeeded. Raises WaitFailed where it failed or was stopped, and WaitTimedOut."""
        return self._loop.run(self._async.wait_until_finished(name, namespace, timeout=timeout))

    def wait_until_suspended(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        return self._loop.run(self._async.wait_until_suspended(name, namespace, timeout=timeout))


class Services(Collection[AsyncServices]):
    """RayServices."""

    def wait_until_ready(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The service once it serves. Raises WaitTimedOut."""
        return self._loop.run(self._async.wait_until_ready(name, namespace, timeout=timeout))


class CronJobs(Collection[AsyncCronJobs]):
    """RayCronJobs."""
