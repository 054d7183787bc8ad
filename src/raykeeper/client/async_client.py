"""`AsyncClient`: Ray objects of one Kubernetes cluster for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.client import history as history_servers
from raykeeper.client.connecting import Target, connected
from raykeeper.client.diagnosis import Diagnosis, Health, health_of
from raykeeper.client.errors import WaitFailed, WaitTimedOut
from raykeeper.client.history import HistoryByUrl, HistoryServer
from raykeeper.client.kinds import CLUSTERS, CRON_JOBS, JOBS, SERVICES
from raykeeper.client.manifests import InvalidManifest, check_manifest
from raykeeper.client.observing import describe
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import NotFound

if TYPE_CHECKING:
    from raykeeper.kube.client import Kube

READY_SECONDS = 600.0
FINISHED_SECONDS = 24 * 3600.0
_LOOK_SECONDS = 1.0
_WATCH_SECONDS = 300
_WATCH_LINE_LIMIT = 16 << 20
_PATIENCE_OUTAGE_SECONDS = 60.0
"""An API server that does not answer while somebody waits is asked again for so long."""

Change = Literal["ADDED", "MODIFIED", "DELETED"]


class Changed(NamedTuple):
    """One step of a watch."""

    change: Change
    object: JSON


class AsyncClient:
    """Ray objects, as `async with AsyncClient() as ray`. Raises errors of `raykeeper.kube.errors`, and `Unavailable`.

    With nothing said it goes where kubectl would go; `server` is the address of an API server of ours instead. With
    `history`, the address of a history server, errors carry the first line of its report.
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
        path = Path(kubeconfig).expanduser() if kubeconfig else None
        self._target = Target(path, context, server, token, ca)
        self._stack = contextlib.AsyncExitStack()
        self._kube: Kube | None = None
        self._namespace = namespace
        self.history: HistoryServer | None = HistoryByUrl(history, history_token) if history else None
        self.clusters = AsyncClusters(self, CLUSTERS)
        self.jobs = AsyncJobs(self, JOBS)
        self.services = AsyncServices(self, SERVICES)
        self.cron_jobs = AsyncCronJobs(self, CRON_JOBS)

    async def __aenter__(self) -> Self:
        self._kube = await self._stack.enter_async_context(connected(self._target))
        self._namespace = self._namespace or self._kube.connection.namespace
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def kube(self) -> Kube:
        """The client of Kubernetes underneath, for everything else."""
        if self._kube is None:
            raise RaykeeperError("the client is not open: use `async with AsyncClient() as ray`")
        return self._kube

    @property
    def namespace(self) -> str:
        """Where things are that name no namespace."""
        return self._namespace or "default"

    async def report(self, kind: str, name: str, namespace: str = "") -> JSON:
        """The history server's report on an object, also if it is gone. Raises NoHistory and Unavailable."""
        if self.history is None:
            raise RaykeeperError("no history server is known: give `history=` with its address")
        return await history_servers.read_report(self.history, kind, ObjectKey(namespace or self.namespace, name))

    async def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> JSON:
        """The JSON of any answer of the server, for what has no method here; refusals raise as everywhere."""
        from raykeeper.kube.http.requests import Request

        data = None if body is None else json.dumps(body).encode()
        answer = await self.kube.send(Request(method, path, f"{method} {path}", data, content_type))
        found: JSON = json.loads(answer.body)
        return found


class AsyncCollection:
    """Objects of one kind."""

    def __init__(self, client: AsyncClient, resource: Resource[JSON]) -> None:
        self._client = client
        self.resource = resource

    def _key(self, name: str, namespace: str) -> ObjectKey:
        return ObjectKey(namespace or self._client.namespace, name)

    async def create(self, manifest: JSON, namespace: str = "", *, dry_run: bool = False) -> JSON:
        """The object as Kubernetes made it. Raises InvalidManifest before anything is sent, and AlreadyExists."""
        place = self._checked(manifest, namespace)
        return await self._client.kube.create(self.resource, manifest, place, dry_run=dry_run)

    async def apply(self, manifest: JSON, namespace: str = "", *, manager: str = "raykeeper-client") -> JSON:
        """The object after server-side apply: made, or changed to what the manifest says. Raises InvalidManifest."""
        place = self._checked(manifest, namespace)
        body = {**manifest, "metadata": {**manifest["metadata"], "namespace": place}}
        return await self._client.kube.apply(self.resource, body, field_manager=manager, force=True)

    def _checked(self, manifest: JSON, namespace: str) -> str:
        if manifest.get("kind") != self.resource.kind:
            problem = f"kind: {manifest.get('kind')!r} is not {self.resource.kind!r}"
            raise InvalidManifest("manifest", [problem])
        check_manifest(manifest)
        return namespace or str(manifest["metadata"].get("namespace", "")) or self._client.namespace

    async def get(self, name: str, namespace: str = "") -> JSON:
        """The object as it is. Raises NotFound."""
        return await self._client.kube.get(self.resource, self._key(name, namespace))

    async def find(self, name: str, namespace: str = "") -> JSON | None:
        """The object, or None."""
        return await self._client.kube.find(self.resource, self._key(name, namespace))

    async def list(
        self, namespace: str = "", *, labels: str | Mapping[str, str] = "", all_namespaces: bool = False
    ) -> list[JSON]:
        """All that match, of one namespace or of all."""
        place = None if all_namespaces else namespace or self._client.namespace
        return await self._client.kube.list(self.resource, place, labels=labels or None)

    async def patch(self, name: str, patch: JSON, namespace: str = "") -> JSON:
        """The object after a merge patch; None removes a field, and lists are replaced."""
        return await self._client.kube.merge_patch(self.resource, self._key(name, namespace), patch)

    async def delete(self, name: str, namespace: str = "", *, missing_ok: bool = False) -> None:
        """Ask for its end. Raises NotFound unless `missing_ok`."""
        try:
            await self._client.kube.delete(self.resource, self._key(name, namespace), propagation="Background")
        except NotFound:
            if not missing_ok:
                raise

    async def suspend(self, name: str, namespace: str = "") -> JSON:
        """Let it have no pods until it is resumed."""
        return await self.patch(name, {"spec": {"suspend": True}}, namespace)

    async def resume(self, name: str, namespace: str = "") -> JSON:
        return await self.patch(name, {"spec": {"suspend": False}}, namespace)

    async def watch(self, namespace: str = "", *, labels: str = "", name: str = "") -> AsyncGenerator[Changed, None]:
        """Every object that is there, then every change, for as long as somebody listens.

        A connection that is cut is made again, and what changed meanwhile is told then.
        """
        place = namespace or self._client.namespace
        query: dict[str, str | int | bool | None] = {
            "watch": True,
            "labelSelector": labels or None,
            "fieldSelector": f"metadata.name={name}" if name else None,
            "timeoutSeconds": _WATCH_SECONDS,
        }
        known: dict[str, JSON] = {}
        while True:
            page = await self._client.kube.page(
                self.resource,
                place,
                labels=labels or None,
                fields=f"metadata.name={name}" if name else None,
                limit=None,
            )
            for change in _difference(known, page.items):
                yield change
            version = page.resource_version
            stream = self._client.kube.stream(
                self.resource.path(place), {**query, "resourceVersion": version}, silence=_WATCH_SECONDS + 30
            )
            async with contextlib.aclosing(stream):
                async for frame in _frames(stream):
                    if frame["type"] == "ERROR":
                        break
                    _remember(known, frame)
                    yield Changed(frame["type"], frame["object"])

    async def describe(self, name: str, namespace: str = "") -> Diagnosis:
        """How it is, and why, in words: conditions, pods, Events, and the report's headline."""
        return await describe(self._client.kube, self.resource, self._key(name, namespace), self._client.history)

    async def wait_until_gone(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> None:
        """Return once there is no such object. Raises WaitTimedOut."""
        await self._wait(name, namespace, timeout, "is gone", lambda item: item is None)

    async def _wait(
        self,
        name: str,
        namespace: str,
        timeout: float,
        what: str,
        is_there: Callable[[JSON | None], bool],
        fails: tuple[Health, ...] = (),
    ) -> JSON:
        """The object once it is as wanted. An answer that cannot be had is asked for again until the deadline."""
        key, deadline = self._key(name, namespace), time.monotonic() + timeout
        waited_for = f"{self.resource.kind} {key} did not come so far that it {what}"
        while True:
            item = await self._answer(key, deadline)
            if is_there(item):
                return item or {}
            if item is None or (fails and health_of(self.resource.kind, item) in fails):
                raise WaitFailed(waited_for, await self.describe(name, namespace))
            if time.monotonic() >= deadline:
                raise WaitTimedOut(f"{waited_for} in {timeout:g} seconds", await self.describe(name, namespace))
            await asyncio.sleep(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))

    async def _answer(self, key: ObjectKey, deadline: float) -> JSON | None:
        patience = time.monotonic() + _PATIENCE_OUTAGE_SECONDS
        while True:
            try:
                return await self._client.kube.find(self.resource, key)
            except Unavailable:
                if time.monotonic() >= min(deadline, patience):
                    raise
                await asyncio.sleep(_LOOK_SECONDS)


def _difference(known: dict[str, JSON], items: list[JSON]) -> list[Changed]:
    """What a fresh list says against what was told before."""
    changes: list[Changed] = []
    there = {item["metadata"]["uid"]: item for item in items}
    for uid in [uid for uid in known if uid not in there]:
        changes.append(Changed("DELETED", known.pop(uid)))
    for uid, item in there.items():
        if uid not in known:
            changes.append(Changed("ADDED", item))
        elif known[uid]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            changes.append(Changed("MODIFIED", item))
        known[uid] = item
    return changes


def _remember(known: dict[str, JSON], frame: JSON) -> None:
    item = frame["object"]
    if frame["type"] == "DELETED":
        known.pop(item["metadata"]["uid"], None)
    else:
        known[item["metadata"]["uid"]] = item


async def _frames(stream: AsyncGenerator[bytes, None]) -> AsyncGenerator[Any, None]:
    rest = b""
    async for piece in stream:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _WATCH_LINE_LIMIT:
            return
        for line in lines:
            if line.strip():
                frame = json.loads(line)
                if frame["type"] != "BOOKMARK":
                    yield frame


class AsyncClusters(AsyncCollection):
    """RayClusters."""

    async def wait_until_ready(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The cluster once all its pods work. Raises WaitTimedOut, and WaitFailed for a spec that is invalid."""
        return await self._wait(
            name, namespace, timeout, "is ready", _has(self.resource, Health.READY), (Health.FAILED,)
        )

    async def wait_until_suspended(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        return await self._wait(name, namespace, timeout, "is suspended", _has(self.resource, Health.SUSPENDED))

    async def scale(
        self,
        name: str,
        group: str,
        replicas: int,
        namespace: str = "",
        *,
        min_replicas: int | None = None,
        max_replicas: int | None = None,
    ) -> JSON:
        """Let a group have so many workers; its bounds give way where they stand against it.

        Raises RaykeeperError where there is no such group, and Conflict where somebody changed it meanwhile.
        """
        cluster = await self.get(name, namespace)
        groups = cluster["spec"].get("workerGroupSpecs", [])
        found = next((one for one in groups if one.get("groupName") == group), None)
        if found is None:
            names = ", ".join(str(one.get("groupName")) for one in groups) or "none"
            raise RaykeeperError(
                f"RayCluster {self._key(name, namespace)} has no worker group {group!r}; it has {names}"
            )
        if replicas < 0:
            raise RaykeeperError(f"replicas must be 0 or more, not {replicas}")
        found["replicas"] = replicas
        least = found.get("minReplicas", 0) if min_replicas is None else min_replicas
        most = found.get("maxReplicas", replicas) if max_replicas is None else max_replicas
        found["minReplicas"], found["maxReplicas"] = min(least, replicas), max(most, replicas)
        version = {"resourceVersion": cluster["metadata"]["resourceVersion"]}
        return await self.patch(name, {"metadata": version, "spec": {"workerGroupSpecs": groups}}, namespace)


class AsyncJobs(AsyncCollection):
    """RayJobs."""

    async def wait_until_running(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The job once it runs or has finished. Raises WaitTimedOut and WaitFailed."""
        reached = _has(self.resource, Health.RUNNING, Health.FINISHED)
        return await self._wait(name, namespace, timeout, "runs", reached, (Health.FAILED,))

    async def wait_until_finished(self, name: str, namespace: str = "", *, timeout: float = FINISHED_SECONDS) -> JSON:
        """The job once it succeeded. Raises WaitFailed where it failed or was stopped, and WaitTimedOut."""
        reached = _has(self.resource, Health.FINISHED)
        return await self._wait(name, namespace, timeout, "succeeded", reached, (Health.FAILED,))

    async def wait_until_suspended(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        reached = _has(self.resource, Health.SUSPENDED)
        return await self._wait(name, namespace, timeout, "is suspended", reached, (Health.FAILED, Health.FINISHED))


class AsyncServices(AsyncCollection):
    """RayServices."""

    async def wait_until_ready(self, name: str, namespace: str = "", *, timeout: float = READY_SECONDS) -> JSON:
        """The service once it serves. Raises WaitTimedOut."""
        return await self._wait(name, namespace, timeout, "serves", _has(self.resource, Health.READY), (Health.FAILED,))


class AsyncCronJobs(AsyncCollection):
    """RayCronJobs."""


def _has(resource: Resource[JSON], *wanted: Health) -> Callable[[JSON | None], bool]:
    def is_there(item: JSON | None) -> bool:
        return item is not None and health_of(resource.kind, item) in wanted

    return is_there
