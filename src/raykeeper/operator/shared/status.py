"""Writes the status of objects of one kind, and reads its own writes before the watch shows them."""

from __future__ import annotations

import msgspec

from raykeeper.api.meta import JSON, Object, ObjectKey, Resource
from raykeeper.api.structs import ApiStruct
from raykeeper.kube.client import Kube
from raykeeper.kube.informers.cache import Cache
from raykeeper.kube.merge import merge_patch_between


class StatusWriter:
    """One merge patch per change, of nothing but what changed.

    Guarantees: after a `write`, `current` gives an object that has the written status, also while the cache does not
    show it yet. So a reconcile never decides twice what its own status says was decided.
    """

    def __init__(self, kube: Kube, resource: Resource[Object], cache: Cache[Object]) -> None:
        self._kube = kube
        self._resource = resource
        self._cache = cache
        self._written: dict[ObjectKey, Object] = {}  # what our own writes returned, until the cache shows it

    def current(self, key: ObjectKey) -> Object | None:
        """The object as last seen: by the cache, or in the answer to our own write if that is newer.

        None where there is none any more; then nothing is remembered of it.
        """
        cached, written = self._cache.get(key), self._written.get(key)
        if cached is None:
            self._written.pop(key, None)
            return None
        if written is None:
            return cached
        if written.metadata.uid == cached.metadata.uid and _is_newer(written, cached):
            return written
        del self._written[key]
        return cached

    async def write(self, item: Object, known: ApiStruct, status: ApiStruct) -> None:
        """Make the status what it should be; `known` is what `item` says, and nothing is sent where that is the same.

        What the status has beside the fields of the struct is removed with the first change.
        """
        if status == known:
            return
        stored: JSON = msgspec.json.decode(item.status) if item.status else {}
        patch = merge_patch_between(stored, msgspec.to_builtins(status))
        self._written[item.key] = await self._kube.merge_patch(
            self._resource, item.key, {"status": patch}, subresource="status"
        )


def _is_newer(one: Object, other: Object) -> bool:
    """Whether a resource version is higher; Kubernetes promises since 1.35 that they can be compared."""
    versions = (one.metadata.resource_version, other.metadata.resource_version)
    return all(text.isdecimal() for text in versions) and int(versions[0]) > int(versions[1])
