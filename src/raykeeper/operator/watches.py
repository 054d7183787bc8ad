"""What controllers look at: kinds of objects in shared caches, and whose reconcile a change of one asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from raykeeper.api import labels
from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.clock import Clock
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.cache import Cache, IndexFunction
from raykeeper.kube.informers.informer import Handler, Informer
from raykeeper.kube.informers.reflector import WatchSettings
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.rights import may
from raykeeper.operator.api_server_facts import ApiServerFacts

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"


def everywhere(_api_server: ApiServerFacts) -> bool:
    """Every API server has this kind."""
    return True


@dataclass(frozen=True, eq=False)
class WatchedKind(Generic[O]):
    """A selection of objects that is followed in one cache, whoever looks at it. Two are never the same."""

    resource: Resource[O]
    labels: str | None = None
    """Label selector in Kubernetes' spelling; what it leaves out is neither sent to us nor kept."""
    indexes: Mapping[str, IndexFunction[O]] = field(default_factory=dict)
    """Ways to find objects in the cache."""
    is_served: Callable[[ApiServerFacts], bool] = everywhere
    """Where the API server has this kind; elsewhere a cache of it would never fill."""


def any_change(_old: Object, _new: Object) -> bool:
    """Every change matters."""
    return True


def more_than_status(old: Object, new: Object) -> bool:
    """Whether anything but the status changed, which we write ourselves."""
    before, after = old.metadata, new.metadata
    return (
        before.generation != after.generation
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.deletion_timestamp != after.deletion_timestamp
        or before.finalizers != after.finalizers
    )


def itself(item: Object) -> Iterable[ObjectKey]:
    """A change of an object asks for its own reconcile."""
    return (item.key,)


def controlled_by(kind: Resource[Any]) -> Callable[[Object], Iterable[ObjectKey]]:
    """A change of an object asks for the reconcile of its controlling owner, if that is of `kind`."""

    def owners(item: Object) -> Iterable[ObjectKey]:
        for owner in item.metadata.owner_references:
            if owner.controller and owner.kind == kind.kind and owner.api_version.partition("/")[0] == kind.group:
                yield ObjectKey(item.metadata.namespace, owner.name)

    return owners


def originated_from(kind: Resource[Any]) -> Callable[[Object], Iterable[ObjectKey]]:
    """A change of an object asks for the reconcile of the RayJob or RayService whose name its labels carry, though
    another may control it: the EndpointSlices of a service, the serve service of a cluster.
    """

    def origins(item: Object) -> Iterable[ObjectKey]:
        marks = item.metadata.labels
        name = marks.get(labels.ORIGINATED_FROM_CR_NAME)
        if name and marks.get(labels.ORIGINATED_FROM_CRD) == kind.kind:
            yield ObjectKey(item.metadata.namespace, name)

    return origins


@dataclass(frozen=True)
class Watch(Generic[O]):
    """Changes of one kind that a controller reacts to."""

    kind: WatchedKind[O]
    concerns: Callable[[O], Iterable[ObjectKey]]
    """The keys to reconcile; asked of the state before and the state after."""
    is_news: Callable[[O, O], bool] = any_change
    """Whether a change from one state to the next matters; appearing and going always does."""
    settle_seconds: float = 0.0
    """How long to wait for more of the same: the pods of a cluster become ready one after the other."""

    def handler(self, add_after: Callable[[ObjectKey, float], None]) -> Handler[O]:
        """What the informer of this kind is to call, so that `add_after` is called with the keys concerned."""

        def on_change(old: O | None, new: O | None) -> None:
            if old is not None and new is not None and not self.is_news(old, new):
                return
            for key in {key for state in (old, new) if state is not None for key in self.concerns(state)}:
                add_after(key, self.settle_seconds)

        return on_change


@dataclass(frozen=True)
class Scope:
    """How the API server is followed."""

    is_wide: bool = False
    """One watch of all namespaces instead of one of each: what is of others is dropped when it comes."""
    streams_lists: bool = False
    """The API server can begin a watch with what there is. Kinds that other servers may serve are left out of it."""


SEPARATE_WATCHES = 4
"""Up to so many namespaces each has its own watches. A watch is a connection, and 19 kinds are followed."""
STREAMING_SINCE = (1, 32)


async def choose_scope(
    kube: Kube, namespaces: Collection[str], kinds: Iterable[Resource[Any]], kubernetes: tuple[int, int]
) -> Scope:
    """How to follow these kinds in these namespaces (none means all) with the rights we have."""
    streams_lists = kubernetes >= STREAMING_SINCE
    if len(namespaces) <= SEPARATE_WATCHES:
        return Scope(streams_lists=streams_lists)
    questions = [may(kube, verb, kind) for kind in {str(kind): kind for kind in kinds}.values() for verb in _FOLLOWING]
    return Scope(is_wide=all(await asyncio.gather(*questions)), streams_lists=streams_lists)


_FOLLOWING = ("list", "watch")


class Informers:
    """One informer for each kind, shared by all who ask before they are started."""

    def __init__(
        self, kube: Kube, namespaces: Iterable[str], metrics: KubeMetrics, clock: Clock, scope: Scope | None = None
    ) -> None:
        self._kube = kube
        self._namespaces = tuple(sorted(namespaces))
        self._scope = scope or Scope()
        self._metrics = metrics
        self._clock = clock
        self._informers: dict[WatchedKind[Any], Informer[Any]] = {}
        self._is_started = False

    def of(self, kind: WatchedKind[O]) -> Informer[O]:
        """The informer of that kind; a first ask after the start is a bug, for it would never fill."""
        if kind not in self._informers:
            if self._is_started:
                raise LookupError(f"{kind.resource} was not asked for before the informers were started")
            self._informers[kind] = Informer(
                self._kube,
                kind.resource,
                self._metrics,
                namespaces=self._namespaces,
                is_wide=self._scope.is_wide,
                labels=kind.labels,
                indexes=kind.indexes,
                settings=WatchSettings(streams_lists=self._scope.streams_lists and kind.is_served is everywhere),
                clock=self._clock,
            )
        return cast(Informer[O], self._informers[kind])

    def cache(self, kind: WatchedKind[O]) -> Cache[O]:
        """The objects of that kind as far as they are known here."""
        return self.of(kind).cache

    def drop_handlers(self) -> None:
        """Forget whoever reacted to changes; the caches go on."""
        for informer in self._informers.values():
            informer.drop_handlers()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        self._is_started = True
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())
            # Also where there is nothing to follow, this ends only when it is cancelled.
            await asyncio.get_running_loop().create_future()

    async def wait_synced(self) -> None:
        """Return once every cache holds its first list."""
        for informer in self._informers.values():
            await informer.wait_synced()

    def problem(self) -> str | None:
        """Why some cache is not what the server has, for a readiness check; None when all are."""
        for kind, informer in self._informers.items():
            if informer.problem:
                return informer.problem
            if not informer.has_synced:
                return f"the list of {kind.resource} is not complete yet"
        return None
