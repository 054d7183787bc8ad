"""Installs and upgrades CustomResourceDefinitions, and deletes them only when told so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from raykeeper.api.crd.upgrade import lost_fields, lost_versions
from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.client import Kube
from raykeeper.logs import Log

CRDS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
FIELD_MANAGER = "raykeeper-crds"
_SHOWN_FIELDS = 5
_SERVED_WITHIN_SECONDS = 60
_GONE_WITHIN_SECONDS = 240
_PAUSE_SECONDS = 0.5

log = Log("raykeeper.crds")


class DowngradeRefused(RaykeeperError):
    """The cluster's definition knows more than ours. Trying again does not help."""

    exit_code = 2


async def apply_crds(kube: Kube, definitions: Iterable[JSON], *, force: bool = False) -> None:
    """Make the cluster's definitions these, all or, where one would lose data, none; return once they are served.

    Raises `DowngradeRefused` naming what stored objects would lose, unless forced.
    """
    wanted = list(definitions)
    if not force:
        for definition in wanted:
            await _refuse_losses(kube, definition)
    for definition in wanted:
        await kube.apply(CRDS, definition, field_manager=FIELD_MANAGER, force=True)
        log.info("definition applied", crd=definition["metadata"]["name"])
    for definition in wanted:
        await _wait_until_served(kube, _key(definition))


async def _refuse_losses(kube: Kube, definition: JSON) -> None:
    found = await kube.find(CRDS, _key(definition))
    if found is None:
        return
    lost = [f"version {name}" for name in lost_versions(found, definition)] or lost_fields(found, definition)
    if lost:
        shown = ", ".join(lost[:_SHOWN_FIELDS]) + (", …" if len(lost) > _SHOWN_FIELDS else "")
        name = definition["metadata"]["name"]
        raise DowngradeRefused(
            f"{name} in the cluster is newer: stored objects would lose {shown}; use a newer raykeeper, or --force"
        )


async def _wait_until_served(kube: Kube, key: ObjectKey) -> None:
    for _ in range(int(_SERVED_WITHIN_SECONDS / _PAUSE_SECONDS)):
        conditions = (await kube.get(CRDS, key)).get("status", {}).get("conditions") or ()  # null at first
        if any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise Unavailable(str(key), f"not served after {_SERVED_WITHIN_SECONDS} seconds")


async def delete_crds(kube: Kube, names: Iterable[str]) -> None:
    """Delete these definitions with all their objects, one after the other; return once they are gone.

    Objects that a finalizer holds go when their operator lets them go, so it should still run.
    """
    for key in (ObjectKey("", name) for name in names):
        if await kube.find(CRDS, key) is not None:
            await kube.delete(CRDS, key)
            await _wait_until_gone(kube, key)
            log.info("definition deleted with all its objects", crd=key.name)


async def _wait_until_gone(kube: Kube, key: ObjectKey) -> None:
    for _ in range(int(_GONE_WITHIN_SECONDS / _PAUSE_SECONDS)):
        if await kube.find(CRDS, key) is None:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise Unavailable(
        str(key),
        f"not gone after {_GONE_WITHIN_SECONDS} seconds: finalizers hold some of its objects; does an operator run?",
    )


def _key(definition: JSON) -> ObjectKey:
    return ObjectKey("", definition["metadata"]["name"])
