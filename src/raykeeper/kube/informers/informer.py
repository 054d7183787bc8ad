"""A local copy of some objects that follows the API server, with indexes and change handlers.

Guarantees: once synced, the cache is a state the server had, at most the length of an outage old; handlers are told of
every object that appeared, changed or went away, also of those that went away while the connection was down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from raykeeper.api.meta import Object, ObjectKey, Resource
from raykeeper.clock import Clock, SystemClock
from raykeeper.kube.informers.cache import Cache, IndexFunction
from raykeeper.kube.informers.reflector import Reflector, Source, WatchSettings
from raykeeper.kube.informers.watch import Selection
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.logs import Log

O = TypeVar("O", bound=Object)  # noqa: E741 - reads as "object" beside T for "anything"

Handler = Callable[[O | None, O | None], None]
"""Called with the old and the new state: (None, new) added, (old, new) changed, (old, None) gone. Must not block."""

log = Log("raykeeper.kube.informer")


class Informer(Generic[O]):
    """Keeps `cache` equal to what the server has, for one kind in all or in several namespaces."""

    def __init__(
        self,
        kube: Source,
        resource: Resource[O],
        metrics: KubeMetrics,
        *,
        namespaces: Sequence[str] = (),
        is_wide: bool = False,
        labels: str | None = None,
        fields: str | None = None,
        indexes: Mapping[str, IndexFunction[O]] | None = None,
        settings: WatchSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`is_wide` follows several namespaces by one watch of all, and drops what is of others."""
        self.cache: Cache[O] = Cache(indexes)
        self._store = Store(self.cache, resource.type, frozenset(namespaces) if is_wide else frozenset())
        places: list[str | None] = [None] if is_wide else [*dict.fromkeys(namespaces)] or [None]
        self._reflectors = [
            Reflector(
                kube,
                Selection(resource, namespace, labels, fields),
                self._store,
                metrics,
                settings or WatchSettings(),
                clock or SystemClock(),
            )
            for namespace in places
        ]
        # By selection: several informers may follow different objects of one kind.
        selection = str(Selection(resource, None, labels, fields))
        metrics.informer_objects.labels(selection).set_function(lambda: len(self.cache))

    def on_change(self, handler: Handler[O]) -> None:
        """Have `handler` called for each later change."""
        self._store.handlers.append(handler)

    def drop_handlers(self) -> None:
        """Call nobody any more; the cache goes on."""
        self._store.handlers.clear()

    @property
    def has_synced(self) -> bool:
        """Whether the first list of every namespace is in the cache."""
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    async def wait_synced(self) -> None:
        """Return once `has_synced`."""
        for reflector in self._reflectors:
            await reflector.synced.wait()

    @property
    def problem(self) -> str | None:
        """Why the cache does not follow the server at present, for a readiness check; None when it does."""
        return next((reflector.problem for reflector in self._reflectors if reflector.problem), None)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"informer of {reflector.selection}")


class Store(Generic[O]):
    """Puts what was read into the cache and tells the handlers what that changed."""

    def __init__(self, cache: Cache[O], kind: type[O], only: frozenset[str] = frozenset()) -> None:
        """`only` names the namespaces whose objects are taken; none means all."""
        self._only = only
        self.handlers: list[Handler[O]] = []
        self._cache = cache
        self._raw_fields = [field.name for field in msgspec.structs.fields(kind) if field.type is msgspec.Raw]

    def keys(self, namespace: str | None) -> list[ObjectKey]:
        return self._cache.keys(namespace)

    def put(self, item: O) -> None:
        """Take over the state of an object; one that is known already, by its resource version, changes nothing."""
        if self._only and item.metadata.namespace not in self._only:
            return
        known = self._cache.get(item.key)
        if known is not None and known.metadata.resource_version == item.metadata.resource_version:
            return
        # A `Raw` is a view that keeps the whole page or line alive, managedFields included.
        for name in self._raw_fields:
            setattr(item, name, getattr(item, name).copy())
        self._cache.put(item)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self._notify(known, None)  # deleted and made again under the same name while we looked away
            known = None
        self._notify(known, item)

    def remove(self, key: ObjectKey) -> None:
        """Forget an object, if it is known."""
        known = self._cache.remove(key)
        if known is not None:
            self._notify(known, None)

    def _notify(self, old: O | None, new: O | None) -> None:
        for handler in self.handlers:
            try:
                handler(old, new)
            except Exception:
                # One broken handler must not stop the others, nor the cache; the traceback makes it a bug report.
                log.exception("informer handler failed", old=old and old.key, new=new and new.key)
