"""The volumes that every Ray pod has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from raykeeper.api.containers import RAY_LOGS_PATH, RAY_LOGS_VOLUME, SHARED_MEMORY_PATH, SHARED_MEMORY_VOLUME
from raykeeper.api.meta import JSON
from raykeeper.operator.shared.mounts import add_mount, attach, mount_at
from raykeeper.operator.shared.totals import amount

RAY_LOGS: Final[JSON] = {"name": RAY_LOGS_VOLUME, "emptyDir": {}}
_MOUNT_FIELDS_TO_SHARE: Final = ("name", "subPath", "subPathExpr")
"""What says which files a mount shows; whether they may be written is each container's own matter."""


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
