"""Volumes of Ray pods. What the user mounted stays; nothing is mounted over it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from raykeeper.api.containers import RAY_LOGS_PATH, RAY_LOGS_VOLUME, SHARED_MEMORY_PATH, SHARED_MEMORY_VOLUME
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.pods.accelerators import amount

RAY_LOGS: Final[JSON] = {"name": RAY_LOGS_VOLUME, "emptyDir": {}}
_MOUNT_FIELDS_TO_SHARE: Final = ("name", "subPath", "subPathExpr")
"""What says which files a mount shows; whether they may be written is each container's own matter."""


def mount_at(container: JSON, path: str) -> JSON | None:
    """What a container has mounted at this very path."""
    mounts: list[JSON] = container.get("volumeMounts") or []
    return next((mount for mount in mounts if mount["mountPath"].rstrip("/") == path), None)


def add_mount(container: JSON, mount: JSON) -> None:
    """Mount it, unless something is mounted there."""
    if mount_at(container, mount["mountPath"]) is None:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def attach(spec: JSON, container: JSON, volume: JSON, mount: JSON) -> None:
    """Mount a volume, unless something is mounted there, and add it to the pod, unless one of its name is."""
    if mount_at(container, mount["mountPath"]) is not None:
        return
    add_mount(container, mount)
    volumes = spec.get("volumes") or []
    if all(existing["name"] != volume["name"] for existing in volumes):
        spec["volumes"] = [*volumes, volume]


def add_shared_memory(spec: JSON, container: JSON) -> None:
    """Give the object store memory to live in: the container runtime's default for /dev/shm is 64 MB."""
    asked = container.get("resources") or {}
    parts: list[JSON] = [asked.get("limits") or {}, asked.get("requests") or {}]
    sizes = [part["memory"] for part in parts if not amount(part, "memory").is_zero()]
    size = {"sizeLimit": sizes[0]} if sizes else {}
    volume = {"name": SHARED_MEMORY_VOLUME, "emptyDir": {"medium": "Memory", **size}}
    attach(spec, container, volume, {"name": SHARED_MEMORY_VOLUME, "mountPath": SHARED_MEMORY_PATH})


def share_session_folder(spec: JSON, ray: JSON, sidecars: Iterable[JSON]) -> None:
    """Show sidecars the folder in which Ray keeps its sessions, in whatever volume the Ray container has it."""
    attach(spec, ray, RAY_LOGS, {"name": RAY_LOGS_VOLUME, "mountPath": RAY_LOGS_PATH})
    theirs = mount_at(ray, RAY_LOGS_PATH) or {}
    shared: JSON = {field: theirs[field] for field in _MOUNT_FIELDS_TO_SHARE if field in theirs}
    for sidecar in sidecars:
        add_mount(sidecar, {**shared, "mountPath": RAY_LOGS_PATH})
