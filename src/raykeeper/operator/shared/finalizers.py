"""Puts finalizers on objects and takes them off."""

from __future__ import annotations

import contextlib
from typing import Any

from raykeeper.api.meta import ObjectKey, ObjectMeta, Resource
from raykeeper.kube.client import Kube
from raykeeper.kube.errors import NotFound


async def add_finalizer(kube: Kube, resource: Resource[Any], metadata: ObjectMeta, finalizer: str) -> None:
    """Make sure that the object cannot go before the finalizer does. Raises `Conflict` after another's change."""
    if finalizer not in metadata.finalizers:
        await _write(kube, resource, metadata, [*metadata.finalizers, finalizer])


async def remove_finalizer(kube: Kube, resource: Resource[Any], metadata: ObjectMeta, finalizer: str) -> None:
    """Let the object go, as far as this finalizer is concerned. Raises `Conflict` after another's change."""
    if finalizer in metadata.finalizers:
        with contextlib.suppress(NotFound):  # gone meanwhile
            await _write(kube, resource, metadata, [name for name in metadata.finalizers if name != finalizer])


async def _write(kube: Kube, resource: Resource[Any], metadata: ObjectMeta, finalizers: list[str]) -> None:
    """The list is replaced whole, so only if nobody else changed the object since."""
    patch = {"finalizers": finalizers, "resourceVersion": metadata.resource_version}
    await kube.merge_patch(resource, ObjectKey(metadata.namespace, metadata.name), {"metadata": patch})
