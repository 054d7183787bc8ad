"""Lists Ray's objects in the API server, and one of them with its pods and Events; remembered for seconds.

Nothing is watched: whoever looks pays for one list a few seconds, and a server that nobody looks at asks for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from raykeeper.api import labels
from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.bounded import Bounded
from raykeeper.history.live_objects.model import (
    KINDS,
    LiveDetail,
    LiveEvent,
    LiveKind,
    LiveObject,
    LiveObjectList,
    LivePod,
    LiveProblem,
)
from raykeeper.history.live_objects.reading import RESOURCES, live_event, live_object, live_pod
from raykeeper.history.observer.facts import KUBE_EVENTS
from raykeeper.history.settings import KubernetesSettings
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.resources import PODS

BELIEVED_SECONDS: Final = 5.0
"""How old an answer may be before Kubernetes is asked again."""
KEPT_SECONDS: Final = 60.0
"""How long objects are shown that were read before Kubernetes stopped to answer."""
MOST_OBJECTS: Final = 2_000
"""Of one kind in one place: some 2 MB of memory. Beyond them a list says that it is not complete."""
MOST_PODS: Final = 500
MOST_JOBS: Final = 100
MOST_EVENTS: Final = 200
MOST_ASKED_ABOUT: Final = 20
"""Objects whose Events are asked for, each by a request of its own: pods that are not well come first."""
_PATIENCE_SECONDS: Final = 8.0
_REMEMBERED: Final = 200
_DETAILS_AT_ONCE: Final = 4
_QPS, _BURST, _CONNECTIONS = 20.0, 60, 4
"""A page that somebody reloads must not cost the API server more than this."""
_JOB_NAME: Final = "batch.kubernetes.io/job-name"

T = TypeVar("T")


@dataclass(frozen=True)
class _Read:
    """What one request, or the pages of one list, gave."""

    objects: tuple[LiveObject, ...] = ()
    is_complete: bool = True
    problem: LiveProblem | None = None
    read_at: float = 0.0


class KubernetesObjects:
    """Ray's objects as one API server has them."""

    def __init__(self, kube: Kube, clock: Clock, namespaces: tuple[str, ...] = ()) -> None:
        self._kube = kube.with_budget(_QPS, _BURST, connections=_CONNECTIONS)
        self._clock = clock
        self._namespaces = namespaces
        """Those that are read; none stands for all."""
        self._listing = asyncio.Lock()
        self._listed: LiveObjectList | None = None
        self._listed_at = float("-inf")
        self._places: dict[tuple[LiveKind, str], _Read] = {}
        self._details: Bounded[tuple[LiveKind, str, str], tuple[float, LiveDetail]] = Bounded(_REMEMBERED)
        self._reading = asyncio.Semaphore(_DETAILS_AT_ONCE)

    async def all(self) -> LiveObjectList:
        """All objects, the newest first; read at most every few seconds, whoever asks."""
        async with self._listing:
            if self._listed is None or self._clock.steady() - self._listed_at >= BELIEVED_SECONDS:
                self._listed = await self._read_all()
                self._listed_at = self._clock.steady()
            return self._listed

    async def _read_all(self) -> LiveObjectList:
        as_of = self._clock.now()
        places = [(kind, namespace) for kind in KINDS for namespace in self._namespaces or ("",)]
        found = await asyncio.gather(*(self._read_place(kind, namespace) for kind, namespace in places))
        self._places = dict(zip(places, found, strict=True))
        objects = [one for read in found for one in read.objects]
        objects.sort(key=lambda one: (one.created_at or as_of, one.namespace, one.name), reverse=True)
        problems = tuple(read.problem for read in found if read.problem)
        return LiveObjectList(
            objects=tuple(objects),
            as_of=as_of,
            is_complete=all(read.is_complete for read in found),
            problems=problems,
        )

    async def _read_place(self, kind: LiveKind, namespace: str) -> _Read:
        """The objects of a kind; if Kubernetes gives no answer, those that were read a moment ago."""
        now = self._clock.steady()
        problems = list[LiveProblem]()
        read = await self._or_problem(
            problems, "list", RESOURCES[kind], namespace, lambda: self._pages(kind, namespace, now)
        )
        if read is not None:
            return read
        [problem] = problems
        before = self._places.get((kind, namespace))
        is_kept = problem.cause == "unavailable" and before is not None and now - before.read_at < KEPT_SECONDS
        kept = before.objects if before and is_kept else ()
        return _Read(kept, problem.cause == "not installed", problem, before.read_at if before and is_kept else now)

    async def _pages(self, kind: LiveKind, namespace: str, now: float) -> _Read:
        objects = list[LiveObject]()
        async for page in self._kube.pages(RESOURCES[kind], namespace or None):
            objects += [live_object(kind, item) for item in page.items]
            if len(objects) >= MOST_OBJECTS:
                return _Read(
                    tuple(objects[:MOST_OBJECTS]), not page.token and len(objects) == MOST_OBJECTS, read_at=now
                )
        return _Read(tuple(objects), read_at=now)

    async def find(self, kind: LiveKind, namespace: str, name: str) -> LiveDetail | LiveProblem | None:
        """One object with its pods and Events, or why it cannot be read; None where there is none."""
        if self._namespaces and namespace not in self._namespaces:
            return None
        key = (kind, namespace, name)
        async with self._reading:
            known = self._details.get(key)
            if known and self._clock.steady() - known[0] < BELIEVED_SECONDS:
                return known[1]
            problems = list[LiveProblem]()
            item = await self._or_problem(
                problems, "get", RESOURCES[kind], namespace, lambda: self._find(kind, ObjectKey(namespace, name))
            )
            if item is None:
                return problems[0] if problems else None
            detail = await self._detail(live_object(kind, item))
            self._details.put(key, (self._clock.steady(), detail))
            return detail

    async def _find(self, kind: LiveKind, key: ObjectKey) -> Object | None:
        return await self._kube.find(RESOURCES[kind], key)

    async def _detail(self, found: LiveObject) -> LiveDetail:
        as_of, problems = self._clock.now(), list[LiveProblem]()
        (pods, has_all_pods), (jobs, has_all_jobs) = await asyncio.gather(
            self._pods(found, as_of, problems), self._jobs(found, problems)
        )
        unwell_first = sorted(pods, key=lambda pod: pod.is_well)
        about = [
            (found.kind, found.name),
            *(("RayCluster", name) for name in found.clusters if (found.kind, found.name) != ("RayCluster", name)),
            *(("Pod", pod.name) for pod in unwell_first),
        ]
        events = await self._events(found.namespace, about[:MOST_ASKED_ABOUT], as_of, problems)
        return LiveDetail(
            object=found,
            as_of=as_of,
            pods=tuple(pods),
            events=tuple(events[:MOST_EVENTS]),
            jobs=tuple(jobs),
            is_complete=has_all_pods and has_all_jobs and len(events) <= MOST_EVENTS and not problems,
            problems=tuple(dict.fromkeys(problems)),
        )

    async def _pods(self, found: LiveObject, at: datetime, problems: list[LiveProblem]) -> tuple[list[LivePod], bool]:
        """Pods of its clusters, and of its submitter; the head first. Whether these are all."""
        selectors: list[Mapping[str, str]] = [{labels.CLUSTER: name} for name in found.clusters]
        if found.kind == "RayJob":
            selectors.append({_JOB_NAME: found.name})

        async def of(selector: Mapping[str, str]) -> tuple[list[Object], bool]:
            page = await self._or_problem(
                problems, "list", PODS, found.namespace, lambda: self._page(PODS, found.namespace, selector, MOST_PODS)
            )
            return page or ([], True)

        pages = await asyncio.gather(*map(of, selectors))
        pods = {item.metadata.uid: pod for items, _ in pages for item in items if (pod := _pod(item, at))}
        is_complete = all(has_all for _, has_all in pages)
        order = {labels.HEAD: 0, labels.WORKER: 1}
        return sorted(pods.values(), key=lambda pod: (order.get(pod.role, 2), pod.is_well, pod.name)), is_complete

    async def _jobs(self, found: LiveObject, problems: list[LiveProblem]) -> tuple[list[LiveObject], bool]:
        """RayJobs that a RayCronJob made."""
        if found.kind != "RayCronJob":
            return [], True
        selector = {labels.CRONJOB_NAME: found.name}
        page = await self._or_problem(
            problems,
            "list",
            RAY_JOBS,
            found.namespace,
            lambda: self._page(RAY_JOBS, found.namespace, selector, MOST_JOBS),
        )
        items, has_all = page or ([], True)
        jobs = [live_object("RayJob", item) for item in items]
        return sorted(jobs, key=lambda job: (str(job.created_at), job.name), reverse=True), has_all

    async def _events(
        self, namespace: str, about: list[tuple[str, str]], at: datetime, problems: list[LiveProblem]
    ) -> list[LiveEvent]:
        """The newest first."""

        async def of(kind: str, name: str) -> list[LiveEvent]:
            fields = {"involvedObject.kind": kind, "involvedObject.name": name}
            page = await self._or_problem(
                problems, "list", KUBE_EVENTS, namespace, lambda: self._page(KUBE_EVENTS, namespace, None, 100, fields)
            )
            return [live_event(event, at) for event in (page or ([], True))[0]]

        found = await asyncio.gather(*(of(kind, name) for kind, name in about))
        return sorted((event for events in found for event in events), key=lambda event: event.at, reverse=True)

    async def _page(
        self,
        resource: Resource[T],
        namespace: str,
        selector: Mapping[str, str] | None,
        limit: int,
        fields: Mapping[str, str] | None = None,
    ) -> tuple[list[T], bool]:
        """The first objects that match, and whether these are all."""
        page = await self._kube.page(resource, namespace, labels=selector, fields=fields, limit=limit)
        return list(page.items), not page.token

    async def _or_problem(
        self,
        problems: list[LiveProblem],
        verb: str,
        resource: Resource[Any],
        namespace: str,
        read: Callable[[], Awaitable[T]],
    ) -> T | None:
        """What is read, or None with one more problem."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await read()
        except (RaykeeperError, TimeoutError) as exc:
            problems.append(_problem(verb, resource, namespace, exc))
            return None


def _pod(item: Object, at: datetime) -> LivePod | None:
    try:
        return live_pod(item, at)
    except msgspec.ValidationError:  # a shape that the API server does not let pass today
        return None


def _problem(verb: str, resource: Resource[Any], namespace: str, exc: RaykeeperError | TimeoutError) -> LiveProblem:
    """What keeps us from reading, in words that say what would be right."""
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    about = {"verb": verb, "resource": str(resource), "namespace": namespace}
    if isinstance(exc, Forbidden | Unauthorized):
        words = f"The server lacks the right to {verb} {resource} {where}"
        return LiveProblem(cause="forbidden", words=words, **about)
    if isinstance(exc, NotFound):
        return LiveProblem(cause="not installed", words=f"Kubernetes knows no {resource}", **about)
    cause = "no answer in time" if isinstance(exc, TimeoutError) else exc.cause if isinstance(exc, Unavailable) else ""
    if isinstance(exc, ApiError):
        cause = f"{exc.status} {exc.reason}"
    return LiveProblem(cause="unavailable", words=f"Kubernetes did not answer for {resource} {where}: {cause}", **about)


@asynccontextmanager
async def kubernetes_objects(
    settings: KubernetesSettings, environment: Mapping[str, str]
) -> AsyncIterator[KubernetesObjects]:
    """Kubernetes as the settings find it. Raises `Misconfigured` where the API server cannot be found."""
    connection = await load_connection(settings.kubeconfig, environment=environment)
    async with Kube(connection, metrics=KubeMetrics(CollectorRegistry())) as kube:
        yield KubernetesObjects(kube, SystemClock(), settings.namespaces)
